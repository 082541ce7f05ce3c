"""Two closers meet on an attempt whose authority is a lease with a pending callback: exactly one decides.

As in test_closing_pairs: the first holds its transaction open, the second is seen to wait for it or answers at once
because it only tries the attempt's lock; then the first commits or rolls back.
"""

from collections.abc import Callable

import pytest

from tests.engine import Attempt, Engine
from tests.races.closers import LEASE_CLOSERS
from tests.races.meetings import Meetings
from tests.stores import Store

pytestmark = pytest.mark.pg


def assert_outcome(store: Store, attempt: Attempt, state: str) -> None:
    """The job is in exactly one place, and the attempt has one history."""
    engine = store.engine()
    assert engine.state(attempt.job_id) == state
    places = engine.sql(
        """select (select count(*) from onecommit.scheduled) as scheduled, (select count(*) from onecommit.lease) as leased,
                  (select count(*) from onecommit.dead_letter) as dead,
                  (select count(*) from onecommit.completion c join onecommit.ready r using (slot, lane, seq)
                   where lane = 0 and r.run_lease = %s) as ended""",
        attempt.run_lease,
    )[0]
    assert (places.scheduled, places.leased, places.dead) == (
        state == "scheduled",
        state == "running",
        state == "dead",
    )
    # A cancelled schedule writes a history of its own, of the same last lease.
    assert places.ended in ((1, 2) if state == "cancelled" else (state != "running",))
    assert engine.status(attempt).state == ("open" if state == "running" else "closed")


# What the second is told when the first commits. ! means at once, without waiting for the first; what follows the mark
# is told when it asks again.
AFTER_COMMIT = """
first          complete_jobs  finish       finish_locked  complete_job  rescue    cancel            complete_ext      fail_ext          retry_ext         resume
complete_jobs  busy!closed    busy!stale   busy!          OC001         skipped!  already_finished  ended             ended             ended             ended
finish         busy!stale     busy!closed  busy!          OC001         skipped!  closed            ended             ended             ended             ended
finish_locked  busy!stale     busy!closed  busy!          OC001         skipped!  closed            ended             ended             ended             ended
complete_job   busy!closed    busy!stale   busy!          OC001         skipped!  already_finished  ended             ended             ended             ended
rescue         busy!stale     busy!stale   busy!          OC001         skipped!  closed            ended             ended             ended             ended
cancel         busy!stale     busy!stale   busy!          OC001         skipped!  already_finished  ended             ended             ended             ended
complete_ext   busy!closed    busy!stale   busy!          OC001         skipped!  already_finished  already_resolved  already_resolved  already_resolved  already_resolved
fail_ext       busy!stale     busy!stale   busy!          OC001         skipped!  already_finished  already_resolved  already_resolved  already_resolved  already_resolved
retry_ext      busy!stale     busy!closed  busy!          OC001         skipped!  closed            already_resolved  already_resolved  already_resolved  already_resolved
resume         busy!closed    busy!closed  busy!          closed        skipped!  closed            already_resolved  already_resolved  already_resolved  already_resolved
"""
MEETINGS = Meetings(LEASE_CLOSERS, AFTER_COMMIT, assert_outcome=assert_outcome)


def finish_all(engine: Engine, attempts: list[Attempt]) -> list[str]:
    return engine.finish(attempts, "failed")


@pytest.fixture
def leased(store: Store, attempt: Attempt) -> Attempt:
    """The open attempt of an ended worker, materialized by a callback that is pending."""
    store.engine().callback(attempt)
    return attempt


def test_the_table_names_every_pair():
    """No meeting of two closers is left out."""
    assert MEETINGS.are_all


@MEETINGS.parametrize
def test_after_the_first_commits(store: Store, leased: Attempt, first: str, second: str):
    """The first decided; the second is told so, and its caller's row is rolled back with it."""
    MEETINGS.after_commit(store, leased, first, second)


@MEETINGS.parametrize
def test_after_the_first_rolls_back(store: Store, leased: Attempt, first: str, second: str):
    """Nothing happened; the second decides, now or when it asks again."""
    MEETINGS.after_rollback(store, leased, first, second)


@pytest.mark.parametrize("close", [Engine.complete, finish_all, Engine.close_with_follow_ups])
def test_a_batch_is_recorded_but_for_the_lease_that_an_open_transaction_holds(
    store: Store, close: Callable[[Engine, list[Attempt]], list[str]]
):
    """The caller who resolves a callback does not hold up attempts that are none of its business."""
    outside, worker = store.engine().begin(), store.engine()
    batch = worker.take(3)
    callbacks = [worker.callback(attempt) for attempt in batch[:2]]
    assert outside.complete_external(callbacks[0], 1) == "accepted"
    assert close(worker, batch) == ["busy", "closed", "closed"]
    assert [worker.status(attempt).state for attempt in batch] == ["in_flight", "closed", "closed"]
    outside.rollback()
    assert close(worker, batch) == ["closed"] * 3


# --- a named callback goes on to the next attempt


@pytest.fixture
def again(store: Store) -> tuple[str, Attempt]:
    """A named callback of an attempt that was rescued, and the attempt that follows."""
    worker = store.engine()
    [attempt] = worker.take()
    callback = worker.callback(attempt, name="payment")
    worker.retire()
    worker.rescue()
    worker.promote()
    worker.register()
    [following] = worker.claim().attempts
    return callback, following


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_resolution_follows_the_callback_to_the_next_attempt(
    store: Store, again: tuple[str, Attempt], ending: str
):
    """It waits for the registration, and closes whichever attempt the callback then belongs to."""
    callback, following = again
    worker, outside = store.engine().begin(), store.engine()
    worker.callback(following, name="payment")
    with store.blocked(outside, outside.complete_external, callback, 1, by=worker) as answer:
        getattr(worker, ending)()
    assert answer.result() == "accepted"
    if ending == "rollback":
        assert outside.state(following.job_id) == "running"
        worker.callback(following, name="payment")
    assert outside.state(following.job_id) == "completed"


@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("how", ["resume_external", "complete_external"])
def test_a_registration_waits_for_a_resolution(
    store: Store, again: tuple[str, Attempt], how: str, ending: str
):
    """And then finds it, or not."""
    callback, following = again
    outside, worker = store.engine().begin(), store.engine()
    assert getattr(outside, how)(callback, 1) == "accepted"
    with store.blocked(worker, worker.callback, following, name="payment", by=outside) as answer:
        getattr(outside, ending)()
    assert answer.result() == callback
    if ending == "rollback":
        assert worker.wait_for(following, callback) == []
    elif how == "resume_external":
        assert worker.wait_for(following, callback) == [("resumed", 1)]
    else:
        assert worker.state(following.job_id) == "completed"


def test_a_callback_that_is_being_resolved_holds_up_no_other(store: Store, leased: Attempt):
    """A poll for many leaves it for the next time, and maintenance does not wait for it either."""
    outside, worker = store.engine().begin(), store.engine()
    other = worker.callback(leased)
    held = worker.value(
        "select callback_id::text from onecommit.callback where callback_id <> %s", other
    )
    assert outside.resume_external(held, 1) == "accepted"
    assert worker.wait_for(leased, held, other) == []
    assert worker.rescue().rescued == 0
    outside.commit()
    assert worker.wait_for(leased, held, other) == [("resumed", 1)]


def test_a_timeout_meets_a_resolution(store: Store, leased: Attempt):
    """Whoever commits first decides: maintenance passes over a callback that is being resolved."""
    outside, worker = store.engine().begin(), store.engine()
    callback = worker.value("select callback_id::text from onecommit.callback")
    assert outside.resume_external(callback, 1) == "accepted"
    outside.sql("update onecommit.callback set timeout_at = now() - interval '1 second'")
    worker.call("expire_callbacks", p_limit=9)
    outside.commit()
    worker.call("expire_callbacks", p_limit=9)
    assert worker.wait_for(leased, callback) == [("resumed", 1)]
