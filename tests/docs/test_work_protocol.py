"""docs/reference/work-protocol.md names a test, or the reason why there is none, for each promise of the Work protocol."""

import re
from itertools import groupby

import pytest

from tests.docs.promises import Page, Promise, names_in

PAGE = Page("work-protocol.md")


@pytest.mark.parametrize(("path", "name"), PAGE.named)
def test_every_test_that_the_page_names_exists(path: str, name: str):
    """Under that name in that file."""
    assert name in names_in(path)


@pytest.mark.parametrize("promise", PAGE.promises, ids=lambda promise: promise.id)
def test_every_promise_has_a_test_or_a_reason(promise: Promise):
    assert promise.is_kept


def test_promises_are_numbered_without_a_gap():
    """By section, so that one that is taken out shows."""
    ids = [re.fullmatch(r"([A-Z])-(\d+)", promise.id) for promise in PAGE.promises]
    assert all(ids)
    for _, numbers in groupby(ids, key=lambda found: found[1]):
        found = [int(each[2]) for each in numbers]
        assert found == list(range(1, len(found) + 1))
    sections = [letter for letter, _ in groupby(found[1] for found in ids)]
    assert len(sections) == len(set(sections))
