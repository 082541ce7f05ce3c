"""Two closers meet on one attempt: exactly one decides, and the other is told the truth.

The first holds its transaction open; the second is seen to wait for it, or answers at once because it only tries
the attempt's lock; then the first commits or rolls back.
"""

import pytest

from tests.engine import Attempt, Engine
from tests.races.closers import CLOSERS
from tests.stores import Store

pytestmark = pytest.mark.pg

# What the second is told when the first commits. ! means at once, without waiting for the first.
AFTER_COMMIT = """
first          complete_jobs  finish  finish_locked  complete_job  rescue    cancel            materialize  register
complete_jobs  closed         stale   stale          OC001         skipped   already_finished  skipped      OC001
finish         stale          closed  closed         OC001         skipped   closed            skipped      OC001
finish_locked  stale          closed  busy!          OC001         skipped!  closed            skipped!     OC001
complete_job   closed         stale   busy!          OC001         skipped!  already_finished  skipped!     OC001
rescue         stale          stale   busy!          OC001         skipped!  closed            skipped!     OC001
cancel         stale          stale   busy!          OC001         skipped!  already_finished  skipped!     OC001
materialize    closed         closed  busy!          closed        skipped!  closed            skipped!     closed
register       closed         closed  busy!          closed        skipped!  closed            skipped!     closed
"""


def _cells() -> dict[tuple[str, str], str]:
    header, *rows = (line.split() for line in AFTER_COMMIT.strip().splitlines())
    return {
        (row[0], second): told
        for row in rows
        for second, told in zip(header[1:], row[1:], strict=True)
    }


CELLS = _cells()
MEETINGS = pytest.mark.parametrize(
    ("first", "second"), CELLS, ids=["-then-".join(c) for c in CELLS]
)


def test_the_table_names_every_pair():
    """No meeting of two closers is left out."""
    assert set(CELLS) == {(first, second) for first in CLOSERS for second in CLOSERS}


@MEETINGS
def test_after_the_first_commits(store: Store, attempt: Attempt, first: str, second: str):
    """The first decided; the second is told so, and its caller's row is rolled back with it."""
    told = CELLS[first, second]
    answer = meet(store, attempt, first, second, waits=not told.endswith("!"), ending=Engine.commit)
    assert answer == told.rstrip("!")
    took_over = answer == "closed" and CLOSERS[second].state != CLOSERS[first].state
    assert_outcome(store, attempt, CLOSERS[second if took_over else first].state)
    assert_invoices(
        store,
        attempt,
        committed=first == "complete_job" or (second, answer) == ("complete_job", "closed"),
    )


@MEETINGS
def test_after_the_first_rolls_back(store: Store, attempt: Attempt, first: str, second: str):
    """Nothing happened; the second decides, now or when it asks again."""
    told = CELLS[first, second]
    waits = not told.endswith("!")
    answer = meet(store, attempt, first, second, waits=waits, ending=Engine.rollback)
    if not waits:
        assert answer == told.rstrip("!")
        assert_outcome(store, attempt, "running")
        with store.engine().open() as engine:
            answer = CLOSERS[second].run(engine, attempt)
    assert answer == "closed"
    assert_outcome(store, attempt, CLOSERS[second].state)
    assert_invoices(store, attempt, committed=second == "complete_job")


def meet(store: Store, attempt: Attempt, first: str, second: str, *, waits: bool, ending) -> str:
    """What the second was told; both transactions have ended."""
    one, two = store.engine().begin(), store.engine().begin()
    assert CLOSERS[first].run(one, attempt) == "closed"
    if waits:
        with store.blocked(two, CLOSERS[second].run, two, attempt, by=one) as answer:
            ending(one)
        told = answer.result()
    else:
        told = CLOSERS[second].run(two, attempt)
        ending(one)
    two.rollback() if told.startswith("OC") else two.commit()
    return told


def assert_outcome(store: Store, attempt: Attempt, state: str) -> None:
    """The job is in exactly one place, and the attempt has one completion."""
    engine = store.engine()
    assert engine.state(attempt.job_id) == state
    places = engine.sql(
        """select (select count(*) from onecommit.scheduled) as scheduled, (select count(*) from onecommit.lease) as leased,
                  (select count(*) from onecommit.dead_letter) as dead,
                  (select count(*) from onecommit.completion where lane = %s and seq = %s) as closed""",
        *attempt.place,
    )[0]
    leased = (
        engine.value("select count(*) from onecommit.completion where outcome = 'materialized'")
        and state == "running"
    )
    assert (places.scheduled, places.leased, places.dead) == (state == "scheduled", leased, 0)
    assert places.closed == (state != "running" or leased)
    assert engine.status(attempt).state == ("open" if state == "running" else "closed")


def assert_invoices(store: Store, attempt: Attempt, *, committed: bool) -> None:
    """The application's row is there exactly if complete_job committed with it."""
    rows = store.engine().sql("select job_id from app.invoice")
    assert [row.job_id for row in rows] == [attempt.job_id] * committed
