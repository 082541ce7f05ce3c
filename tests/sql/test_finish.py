"""Where a job goes when its attempt ends otherwise than completed."""

import json
from datetime import timedelta

import pytest

from tests.engine import HOUR_US, Engine

pytestmark = pytest.mark.pg

# outcome: (state, attempts used, recorded outcome) after the first of three attempts, and after the last.
ENDS = {
    "retried": (("scheduled", 1, "retried"), ("dead", 3, "failed")),
    "snoozed": (("scheduled", 0, "snoozed"), ("scheduled", 2, "snoozed")),
    "failed": (("dead", 1, "failed"), ("dead", 3, "failed")),
    "discarded": (("dead", 1, "discarded"), ("dead", 3, "discarded")),
    "cancelled": (("cancelled", 1, "cancelled"), ("cancelled", 3, "cancelled")),
}
LOCK = pytest.mark.parametrize("lock", [False, True], ids=["batch", "locked"])


def last_attempt(engine: Engine):
    """The third attempt of three."""
    [attempt] = engine.take(1, max_attempts=3)
    for _ in range(2):
        engine.finish([attempt], "retried")
        engine.promote()
        [attempt] = engine.claim().attempts
    assert (attempt.number, attempt.run_lease) == (3, 3)
    return attempt


@LOCK
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("outcome", ENDS)
def test_each_outcome_sends_the_job_to_its_place(
    engine: Engine, outcome: str, last: bool, lock: bool
):
    """A retry of the last attempt is a failure; a snooze is no attempt."""
    attempt = last_attempt(engine) if last else engine.take(1, max_attempts=3)[0]
    detail = json.dumps({"error": "boom"})
    assert engine.finish([attempt], outcome, code="c", detail=detail, lock=lock) == ["closed"]
    state, used, recorded = ENDS[outcome][last]
    job = engine.job(attempt.job_id)
    assert (job.state, job.attempt, job.run_lease) == (state, used, attempt.run_lease)
    assert engine.status(attempt).outcome == recorded
    if state == "dead":
        assert (job.code, job.outcome, job.detail) == ("c", recorded, detail)


@LOCK
@pytest.mark.parametrize("outcome", ENDS)
def test_the_same_call_again_is_success_and_changes_nothing(
    engine: Engine, outcome: str, lock: bool
):
    """As after a lost reply; also the retry that became a failure."""
    for attempt in (engine.take(1, max_attempts=3)[0], last_attempt(engine)):
        engine.finish([attempt], outcome, code="c")
        before = engine.job(attempt.job_id)
        assert engine.finish([attempt], outcome, code="other", delay_us=5, lock=lock) == ["closed"]
        assert engine.job(attempt.job_id) == before


@LOCK
def test_another_outcome_comes_too_late(engine: Engine, lock: bool):
    """The first decided; completion and cancellation are other outcomes too."""
    attempts = engine.take(4)
    for attempt, outcome in zip(attempts, ENDS, strict=False):
        engine.finish([attempt], outcome)
        for other in set(ENDS) - {outcome}:
            if (outcome, other) != ("failed", "retried"):
                assert engine.finish([attempt], other, lock=lock) == ["stale"]
        assert engine.complete([attempt]) == ["stale"]


def test_a_batch_is_judged_item_by_item(engine: Engine):
    """Losers do not hold up the others; verdicts carry the item's number."""
    attempts = engine.take(5)
    engine.complete([attempts[1], attempts[3]])
    assert engine.finish(attempts, "retried") == ["closed", "stale", "closed", "stale", "closed"]
    assert [engine.state(a.job_id) for a in attempts] == ["scheduled", "completed"] * 2 + [
        "scheduled"
    ]


def test_a_foreign_place_is_stale_and_writes_nothing(engine: Engine):
    """A number that was never drawn, a lane that is nobody's."""
    [attempt] = engine.take()
    for change in ({"p_seqs": [99]}, {"p_lanes": [63]}):
        arguments = {
            "p_chapters": [1], "p_lanes": [attempt.lane], "p_seqs": [attempt.seq], "p_job_ids": [attempt.job_id], "p_run_leases": [1],
            "p_outcomes": ["failed"], "p_delays_us": [0], "p_codes": ["c"], "p_details": [None], "p_lock": False,
        } | change  # fmt: skip
        [verdict] = engine.call("finish_jobs", **arguments)
        assert tuple(verdict) == (1, "stale")
    assert engine.value("select count(*) from onecommit.completion") == 0


def test_a_delay_counts_on_the_database_clock(engine: Engine):
    """Until then the job is scheduled, with the attempt it has used."""
    [attempt] = engine.take()
    engine.finish([attempt], "retried", delay_us=HOUR_US)
    due = engine.job(attempt.job_id).run_at - engine.value("select clock_timestamp()")
    assert timedelta(minutes=59) < due <= timedelta(hours=1)
    promoted = engine.promote()
    assert promoted.promoted == 0
    assert 0 < promoted.next_in_us <= HOUR_US


def test_promotion_takes_what_is_due_soonest_first(engine: Engine):
    """And says when it should look again."""
    jobs = [engine.enqueue_one(delay_us=n * HOUR_US) for n in (3, 1, 2, 9)]
    engine.sql("update onecommit.scheduled set run_at = run_at - interval '4 hours'")
    assert engine.promote(limit=2).promoted == 2
    assert engine.claim().job_ids == [jobs[1], jobs[2]]
    promoted = engine.promote()
    assert (promoted.promoted, engine.claim().job_ids) == (1, [jobs[0]])
    assert 4 * HOUR_US < promoted.next_in_us <= 5 * HOUR_US
    engine.cancel(jobs[3])
    assert tuple(engine.promote()) == (0, None)


def test_a_promoted_job_goes_to_the_lane_of_its_priority(engine: Engine):
    """Several queues and priorities in one step."""
    places = {("a", 1): 0, ("a", 4): 0, ("b", 2): 0}
    for queue, priority in places:
        places[queue, priority] = engine.enqueue_one(
            queue=queue, priority=priority, delay_us=HOUR_US
        )
    engine.sql("update onecommit.scheduled set run_at = now()")
    assert engine.promote().promoted == 3
    for (_, priority), job in places.items():
        assert engine.job(job).priority == priority
    assert engine.claim(queue="a").job_ids == [places["a", 1], places["a", 4]]
    assert engine.claim(queue="b").job_ids == [places["b", 2]]


def test_a_released_job_is_ready_at_once(engine: Engine):
    """A snooze without delay gives an unstarted attempt back: next lease, same attempt number."""
    [attempt] = engine.take()
    engine.finish([attempt], "snoozed", delay_us=0)
    engine.promote()
    [again] = engine.claim().attempts
    assert (again.job_id, again.number, again.run_lease) == (attempt.job_id, 1, 2)
    assert engine.complete([attempt]) == ["stale"]
    assert engine.complete([again]) == ["closed"]


def test_completion_is_told_item_by_item(engine: Engine):
    """Winners are silent, a repeated call is success, details are kept."""
    attempts = engine.take(3)
    engine.finish([attempts[1]], "failed")
    details = ['{"result": 1}', None, '{"result": 3}']
    for _ in range(2):
        assert engine.complete(attempts, details=details) == ["closed", "stale", "closed"]
    assert [engine.job(a.job_id).detail for a in attempts[::2]] == details[::2]
    assert engine.complete([]) == []


def test_completions_of_many_chapters_and_lanes_travel_in_one_batch(engine: Engine):
    """The order of the arrays does not matter."""
    engine.enqueue(3, options={"priority": 3})
    engine.enqueue(3)
    attempts = list(engine.claim().attempts)
    assert engine.complete(attempts[::-1]) == ["closed"] * 6
    assert {engine.state(a.job_id) for a in attempts} == {"completed"}
