"""What would pin the oldest chapter moves out of it, and nobody who holds a token notices."""

import psycopg
import pytest

from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg


@pytest.fixture
def tender(store: Store) -> Engine:
    """The leader of a ring that evacuates a chapter as soon as it is closed."""
    store.truncate_ring()
    tender = store.engine()
    tender.register()
    tender.sql(
        "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0', evacuate_after = '0'"
    )
    for priority in (1, 2):
        tender.call("adopt_lane", p_queue="q", p_priority=priority)
    return tender


def tend_without_rotation(tender: Engine) -> list[tuple[str, int | None]]:
    """All other steps that can be made now."""
    tender.sql("update onecommit.ring set chapter_lifetime = '1 day'")
    steps = [tender.tend()]
    while steps[-1][0] not in {"none", "blocked"}:
        steps.append(tender.tend())
    return steps


def leased(tender: Engine, **options) -> Attempt:
    """An attempt that stayed open while its chapter was evacuated and reclaimed."""
    [attempt] = tender.take(1, **options)
    assert [tender.tend() for _ in range(3)] == [("rotate", 2), ("evacuate", 1), ("reclaim", 1)]
    return attempt


def test_waiting_rows_of_a_paused_queue_move_on(tender: Engine):
    """They wait in the head in their order, and are handed out once when the queue is resumed."""
    jobs = tender.enqueue(3).job_ids
    urgent = tender.enqueue(2, options={"priority": 1}).job_ids
    tender.pause()
    assert [tender.tend(), *tend_without_rotation(tender)] == [
        ("rotate", 2),
        ("evacuate", 1),
        ("reclaim", 1),
        ("none", None),
    ]
    assert tender.claim().status == "paused"
    assert {tender.state(job) for job in jobs} == {"ready"}
    tender.resume()
    claimed = tender.claim()
    assert claimed.job_ids == [*urgent, *jobs]
    assert {(a.chapter, a.run_lease, a.number) for a in claimed.attempts} == {(2, 1, 1)}
    assert tender.drain() == []


def test_lease_and_attempt_of_a_moved_job_are_unchanged(tender: Engine):
    """A move is no attempt."""
    [attempt] = tender.take(1, max_attempts=3)
    tender.finish([attempt], "retried")
    tender.promote()
    tender.pause()
    assert ("evacuate", 1) in [tender.tend() for _ in range(3)]
    tender.resume()
    [again] = tender.claim().attempts
    assert (again.job_id, again.run_lease, again.number) == (attempt.job_id, 2, 2)


def test_waiting_rows_of_a_queue_without_worker_move_on(tender: Engine):
    """A queue with a worker is left alone: its rows will be claimed."""
    lonely = tender.enqueue_one(queue="lonely")
    waiting = tender.enqueue_one()
    assert [tender.tend(), *tend_without_rotation(tender)] == [
        ("rotate", 2),
        ("evacuate", 1),
        ("none", None),
    ]
    [moved] = tender.claim(queue="lonely").attempts
    [left] = tender.claim().attempts
    assert (moved.job_id, moved.chapter) == (lonely, 2)
    assert (left.job_id, left.chapter) == (waiting, 1)


@pytest.mark.parametrize("way", ["moved", "materialized"])
def test_an_old_row_that_still_stands_does_not_hide_the_end(tender: Engine, way: str):
    """Neither a moved row nor a materialized one is where the job is."""
    [job] = tender.enqueue().job_ids
    if way == "moved":
        tender.pause()
        tender.tend()
        assert tender.tend() == ("evacuate", 1)
        tender.resume()
        tender.complete(tender.claim().attempts)
    else:
        [attempt] = tender.claim().attempts
        assert tender.materialize(attempt)
        tender.complete([attempt])
    assert tender.value("select count(*) from onecommit.ready where job_id = %s", job) == 2
    seen = tender.job(job)
    assert (seen.state, seen.run_lease, seen.attempt) == ("completed", 1, 1)
    listed = tender.call(
        "list_jobs", p_state=None, p_queue=None, p_kind=None, p_limit=9, p_before=None
    )
    assert [(row.job_id, row.state) for row in listed] == [(job, "completed")]


def test_a_moved_job_can_be_cancelled(tender: Engine):
    """It is found where it waits now."""
    [job] = tender.enqueue().job_ids
    tender.pause()
    tender.tend()
    assert tender.tend() == ("evacuate", 1)
    assert tender.cancel(job) == {job: "cancelled"}
    tender.resume()
    assert tender.drain() == []


@pytest.mark.parametrize("first", ["cancel", "tend"])
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_cancellation_meets_an_evacuation(store: Store, tender: Engine, first: str, ending: str):
    """One waits for the other, and the job is cancelled wherever it is."""
    [job] = tender.enqueue().job_ids
    tender.pause()
    tender.tend()
    operator, other = store.engine(), store.engine()
    if first == "cancel":
        operator.begin()
        assert operator.cancel(job) == {job: "cancelled"}
        # The tender's wait for the key is bounded by its lock timeout.
        assert other.tend() == ("blocked", None)
        getattr(operator, ending)()
        if ending == "rollback":
            assert operator.cancel(job) == {job: "cancelled"}
    else:
        other.begin()
        assert other.tend() == ("evacuate", 1)
        with store.blocked(operator, operator.cancel, job, by=other) as answer:
            getattr(other, ending)()
        assert answer.result() == {job: "cancelled"}
    tender.resume()
    assert (tender.drain(), tender.state(job)) == ([], "cancelled")


def test_a_move_does_not_meet_a_claim_in_flight(store: Store, tender: Engine):
    """The lane is busy, so the row stays where the claim will have seen it."""
    [job] = tender.enqueue().job_ids
    tender.tend()
    worker = store.engine()
    worker.register()
    worker.begin()
    assert worker.claim().job_ids == [job]
    tender.pause()
    assert tender.tend() == ("none", None)
    worker.commit()
    assert tender.tend() == ("evacuate", 1)
    assert tender.job(job).state == "running"


CLOSERS = {
    "complete_jobs": (lambda e, a: e.complete([a]), "completed"),
    "complete_job": (lambda e, a: e.complete_job(a), "completed"),
    "retried": (lambda e, a: e.finish([a], "retried"), "scheduled"),
    "snoozed": (lambda e, a: e.finish([a], "snoozed", lock=True), "scheduled"),
    "failed": (lambda e, a: e.finish([a], "failed"), "dead"),
    "discarded": (lambda e, a: e.finish([a], "discarded"), "dead"),
    "finished as cancelled": (lambda e, a: e.finish([a], "cancelled"), "cancelled"),
    "cancel_jobs": (lambda e, a: e.cancel(a.job_id), "cancelled"),
    "rescue_jobs": (lambda e, _: (e.retire(), e.rescue()), "scheduled"),
}


@pytest.mark.parametrize("closer", CLOSERS)
def test_the_unchanged_token_closes_a_materialized_attempt(tender: Engine, closer: str):
    """Every closer finds the lease, though the claim and its row are truncated."""
    attempt = leased(tender, max_attempts=3)
    assert tender.value("select count(*) from onecommit.claim") == 0
    assert (tender.state(attempt.job_id), tender.status(attempt).state) == ("running", "open")
    close, state = CLOSERS[closer]
    close(tender, attempt)
    assert (tender.state(attempt.job_id), tender.status(attempt).state) == (state, "closed")
    assert tender.complete([attempt]) == (["closed"] if state == "completed" else ["stale"])
    assert tender.value("select count(*) from onecommit.lease") == 0
    with pytest.raises(psycopg.Error) as refused:
        tender.complete_job(attempt)
    assert refused.value.sqlstate == "OC001"


@pytest.mark.parametrize("outcome", ["retried", "snoozed"])
def test_a_materialized_attempt_goes_on_counting(tender: Engine, outcome: str):
    """The next attempt has the next lease, and the next number if the last one counted."""
    attempt = leased(tender)
    tender.finish([attempt], outcome)
    tender.promote()
    [again] = tender.claim().attempts
    assert (again.job_id, again.run_lease, again.number) == (
        attempt.job_id,
        2,
        2 if outcome == "retried" else 1,
    )


def test_the_last_materialized_attempt_ends_in_the_dead_letters(tender: Engine):
    """A lease knows how many attempts were left."""
    attempt = leased(tender, max_attempts=1)
    assert tender.finish([attempt], "retried", code="boom") == ["closed"]
    job = tender.job(attempt.job_id)
    assert (job.state, job.code, job.attempt) == ("dead", "boom", 1)


def test_the_deadline_of_a_materialized_attempt_passes(tender: Engine):
    """Rescue looks at leases by deadline too."""
    [job] = tender.enqueue().job_ids
    [attempt] = tender.claim(lifetime_us=1).attempts
    assert tender.materialize(attempt)
    assert tender.rescue().rescued == 1
    assert tender.state(job) == "scheduled"


def test_an_attempt_whose_caller_is_in_flight_is_not_materialized(store: Store, tender: Engine):
    """Its lock is held; the chapter waits for it."""
    [attempt] = tender.take()
    tender.tend()
    caller = store.engine().begin()
    caller.complete_job(attempt)
    assert tender.tend() == ("none", None)
    caller.commit()
    assert tender.tend() == ("reclaim", 1)


def test_history_of_a_materialized_attempt_is_kept_like_any_other(tender: Engine):
    """It lies in the chapter in which it ended and goes with it."""
    attempt = leased(tender)
    tender.complete_job(attempt, progress={"done": 7})
    job = tender.job(attempt.job_id)
    assert (job.state, job.outcome, job.attempt, job.run_lease) == ("completed", "completed", 1, 1)
    assert tender.complete([attempt]) == ["closed"]
    assert [tender.tend() for _ in range(2)] == [("rotate", 3), ("reclaim", 2)]
    assert tender.job(attempt.job_id) is None
    assert tender.status(attempt).state == "unknown"
    assert tender.complete([attempt]) == ["recycled"]


@pytest.mark.parametrize("registered", [False, True], ids=["long-open", "with a callback"])
def test_an_attempt_open_over_a_whole_ring_completes_under_its_token(
    store: Store, tender: Engine, registered: bool
):
    """Its claim is gone and its slot is used anew; the caller's rows and the completion still land in one commit."""
    [attempt] = tender.take()
    callback = tender.callback(attempt) if registered else None
    for chapter in range(2, 9):
        tender.sql("update onecommit.ring set chapter_lifetime = '1us'")
        other = tender.take(1)
        tender.complete(other)
        assert ("rotate", chapter) in [tender.tend(), *tend_without_rotation(tender)]
    assert tender.value("select reclaimed from onecommit.ring") == 7
    assert tender.sql("select from onecommit.claim where batch_id = %s", attempt.batch_id) == []
    assert tender.status(attempt).state == "open"
    if callback is not None:
        assert tender.resume_external(callback, 1) == "accepted"
        assert tender.wait_for(attempt, callback) == [("resumed", 1)]
    with tender.open():
        tender.sql("insert into app.invoice values (%s)", attempt.job_id)
        receipt = tender.complete_job(attempt)
    assert {field: getattr(receipt, field) for field in attempt.token} == attempt.token
    assert tender.status(attempt).outcome == "completed"
    assert tender.state(attempt.job_id) == "completed"
    with pytest.raises(psycopg.Error) as refused:
        tender.complete_job(attempt)
    assert refused.value.sqlstate == "OC001"


def test_an_attempt_whose_chapter_is_gone_registers_no_callback(tender: Engine):
    """Its claim still stands in a later chapter, but the attempt was closed: stale, not something to repeat."""
    tender.enqueue()
    assert tender.tend() == ("rotate", 2)
    [attempt] = tender.claim().attempts
    tender.complete([attempt])
    assert ("reclaim", 1) in tend_without_rotation(tender)
    assert tender.value(
        "select count(*) from onecommit.claim where batch_id = %s", attempt.batch_id
    )
    with pytest.raises(psycopg.Error) as refused:
        tender.callback(attempt)
    assert refused.value.sqlstate == "OC001"
