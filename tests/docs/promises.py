"""A page that names a test, or the reason why there is none, for each promise."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One row of a table."""

    id: str
    """As the page numbers it; the promise itself where it does not."""
    tests: str
    reason: str

    @property
    def is_kept(self) -> bool:
        """An empty row would be a promise that nobody keeps."""
        return bool(re.search(r"::test_\w+`", self.tests) or self.reason)


class Page:
    """Its promises, and the tests that it names anywhere."""

    def __init__(self, name: str) -> None:
        self.text = (ROOT / "docs" / "reference" / name).read_text()
        self.promises = list(self._promises())
        self.named = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", self.text)))

    def _promises(self) -> Iterator[Promise]:
        for line in self.text.splitlines():
            cells = [cell.strip() for cell in line[1:].removesuffix("|").split("|")]
            if line.startswith("| ") and cells[-2] != "tests":
                yield Promise(id=cells[0], tests=cells[-2], reason=cells[-1])


def names_in(path: str) -> set[str]:
    """The tests that a file holds."""
    return {
        node.name
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }
