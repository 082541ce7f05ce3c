"""docs/reference/acceptance.md names a test, or the reason why there is none, for each promise."""

import pytest

from tests.docs.promises import Page, Promise, names_in

PAGE = Page("acceptance.md")
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


@pytest.mark.parametrize(("path", "name"), PAGE.named)
def test_every_test_that_the_page_names_exists(path: str, name: str):
    """Under that name in that file."""
    assert name in names_in(path)


@pytest.mark.parametrize("promise", PAGE.promises, ids=lambda promise: promise.id)
def test_every_promise_has_a_test_or_a_reason(promise: Promise):
    assert promise.is_kept


def test_the_first_proofs_are_tests_of_their_own_name():
    names = names_in("tests/acceptance/test_finalization.py")
    assert {f"test_{proof}" for proof in PROVED} <= names
