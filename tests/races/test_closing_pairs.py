"""Two closers meet on one attempt: exactly one decides, and the other is told the truth.

The first holds its transaction open; the second is seen to wait for it, or answers at once because it only tries
the attempt's lock; then the first commits or rolls back.
"""

import pytest

from tests.engine import Attempt
from tests.races.closers import CLOSERS
from tests.races.meetings import Meetings
from tests.stores import Store

pytestmark = pytest.mark.pg


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
MEETINGS = Meetings(CLOSERS, AFTER_COMMIT, assert_outcome=assert_outcome)


def test_the_table_names_every_pair():
    """No meeting of two closers is left out."""
    assert MEETINGS.are_all


@MEETINGS.parametrize
def test_after_the_first_commits(store: Store, attempt: Attempt, first: str, second: str):
    """The first decided; the second is told so, and its caller's row is rolled back with it."""
    MEETINGS.after_commit(store, attempt, first, second)


@MEETINGS.parametrize
def test_after_the_first_rolls_back(store: Store, attempt: Attempt, first: str, second: str):
    """Nothing happened; the second decides, now or when it asks again."""
    MEETINGS.after_rollback(store, attempt, first, second)
