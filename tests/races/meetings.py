"""Two closers meet on one attempt, in both orders: the first commits or rolls back under the eyes of the second."""

from collections.abc import Callable, Mapping

import pytest

from tests.engine import Attempt, Engine
from tests.races.closers import Closer
from tests.stores import Store

AssertOutcome = Callable[[Store, Attempt, str], None]


class Meetings:
    """Every pair of some closers, and what the second is told when the first commits.

    The table has a row for each first closer; ! means at once, without waiting for the first, and what follows it is
    what the second is told when it asks again after the commit.
    """

    def __init__(
        self, closers: Mapping[str, Closer], table: str, *, assert_outcome: AssertOutcome
    ) -> None:
        self._closers = closers
        self._assert_outcome = assert_outcome
        header, *rows = (line.split() for line in table.strip().splitlines())
        self._told = {
            (row[0], second): told
            for row in rows
            for second, told in zip(header[1:], row[1:], strict=True)
        }

    @property
    def parametrize(self) -> pytest.MarkDecorator:
        """The pairs, as arguments of a test."""
        ids = ["-then-".join(pair) for pair in self._told]
        return pytest.mark.parametrize(("first", "second"), self._told, ids=ids)

    @property
    def are_all(self) -> bool:
        """Whether the table leaves no meeting out."""
        return set(self._told) == {(one, two) for one in self._closers for two in self._closers}

    def after_commit(self, store: Store, attempt: Attempt, first: str, second: str) -> None:
        """The second is told what the table says, and the attempt ends as whoever decided says."""
        answer, expected = self._meet(store, attempt, first, second, ending=Engine.commit)
        assert answer == expected
        if again := self._told[first, second].partition("!")[2]:
            answer = self._ask_again(store, attempt, second)
            assert answer == again
        took_over = answer == "closed" and self._closers[second].state != self._closers[first].state
        self._assert_outcome(store, attempt, self._closers[second if took_over else first].state)
        committed = first == "complete_job" or (second, answer) == ("complete_job", "closed")
        assert_invoices(store, attempt, committed=committed)

    def after_rollback(self, store: Store, attempt: Attempt, first: str, second: str) -> None:
        """The second closes the attempt, now or when it asks again."""
        answer, expected = self._meet(store, attempt, first, second, ending=Engine.rollback)
        if not self._waits(first, second):
            assert answer == expected
            self._assert_outcome(store, attempt, "running")
            answer = self._ask_again(store, attempt, second)
        assert answer == "closed"
        self._assert_outcome(store, attempt, self._closers[second].state)
        assert_invoices(store, attempt, committed=second == "complete_job")

    def _ask_again(self, store: Store, attempt: Attempt, second: str) -> str:
        with store.engine().open() as engine:
            return self._closers[second].run(engine, attempt)

    def _waits(self, first: str, second: str) -> bool:
        return "!" not in self._told[first, second]

    def _meet(
        self,
        store: Store,
        attempt: Attempt,
        first: str,
        second: str,
        *,
        ending: Callable[[Engine], object],
    ) -> tuple[str, str]:
        """What the second was told, and what the table says; both transactions have ended."""
        one, two = store.engine().begin(), store.engine().begin()
        run = self._closers[second].run
        assert self._closers[first].run(one, attempt) == "closed"
        if self._waits(first, second):
            with store.blocked(two, run, two, attempt, by=one) as answer:
                ending(one)
            told = answer.result()
            if told == "busy":  # a commit lets go of advisory locks last
                told = self._ask_again(store, attempt, second)
        else:
            told = run(two, attempt)
            ending(one)
        two.rollback() if told.startswith("OC") else two.commit()
        return told, self._told[first, second].partition("!")[0]


def assert_invoices(store: Store, attempt: Attempt, *, committed: bool) -> None:
    """The application's row is there exactly if complete_job committed with it."""
    rows = store.engine().sql("select job_id from app.invoice")
    assert [row.job_id for row in rows] == [attempt.job_id] * committed
