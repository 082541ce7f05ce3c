"""docs/reference/acceptance.md names a test, or the reason why there is none, for each promise."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "acceptance.md").read_text()
PROMISES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)
# As they stand in the design: each is a test of its own, whose name says so.
PROVED = (
    "commit",
    "rollback",
    "stale_lease",
    "rescue_wins",
    "completion_wins",
    "follow_up_insert",
    "uniqueness",
    "progress_and_terminal_hydration",
)


def names_in(path: Path) -> set[str]:
    """The tests that a file holds."""
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_every_test_that_the_page_names_exists(path: str, name: str):
    """Under that name in that file."""
    assert name in names_in(ROOT / path)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise[0])
def test_every_promise_has_a_test_or_a_reason(promise: list[str]):
    """An empty row would be a promise that nobody keeps."""
    _, tests, reason = promise
    assert re.search(r"::test_\w+`", tests) or reason


def test_the_first_proofs_are_tests_of_their_own_name():
    names = names_in(ROOT / "tests" / "acceptance" / "test_finalization.py")
    assert {f"test_{proof}" for proof in PROVED} <= names
