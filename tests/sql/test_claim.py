"""Which jobs a claim hands out, in which order, and what it answers when there are none."""

import pytest

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg


def test_jobs_are_handed_out_once_in_order(engine: Engine):
    """Across claims of any size."""
    jobs = engine.enqueue(10).job_ids
    taken = [job for limit in (1, 3, 2, 100) for job in engine.claim(limit).job_ids]
    assert taken == jobs
    assert engine.claim().job_ids == []


def test_the_answer_says_whether_to_come_back(engine: Engine):
    """More when the limit was reached, empty when nothing is left, and the same for a queue nobody has used."""
    engine.enqueue(3)
    assert [engine.claim(2).status, engine.claim(2).status, engine.claim(2).status] == [
        "more",
        "empty",
        "empty",
    ]
    assert engine.claim(queue="never used").status == "empty"


def test_a_batch_is_a_token_for_each_attempt(engine: Engine):
    """Its fields name one attempt; receipts differ from batch to batch."""
    engine.enqueue(2)
    engine.enqueue(1, options={"priority": 1})
    claimed = engine.claim()
    assert [len(batch.seqs) for batch in claimed.batches] == [1, 2]
    assert len({batch.receipt_id for batch in claimed.batches}) == 2
    for attempt in claimed.attempts:
        assert (attempt.run_lease, attempt.number) == (1, 1)
        assert engine.status(attempt).state == "open"


def test_priorities_come_first_to_last(engine: Engine):
    """One claim goes through the lanes until its limit is reached."""
    jobs = {p: engine.enqueue(2, options={"priority": p}).job_ids for p in (3, 1, 4, 2)}
    claimed = engine.claim(5)
    assert claimed.job_ids == [*jobs[1], *jobs[2], jobs[3][0]]
    assert engine.claim().job_ids == [jobs[3][1], *jobs[4]]


def test_waiting_long_lifts_the_priority(engine: Engine):
    """One step for each aging interval that the head of the lane has waited, so nothing starves."""
    old = engine.enqueue_one(priority=4)
    engine.enqueue(1, options={"priority": 1})
    engine.sql(
        "update onecommit.ready set created_at = created_at - interval '125 seconds' where job_id = %s",
        old,
    )
    new = engine.enqueue_one(priority=3)
    # 4 - 2 = 2: behind priority 1, before priority 3.
    assert engine.claim(2).job_ids[1] == old
    assert engine.claim(1).job_ids == [new]
    engine.enqueue(2, options={"priority": 1})
    oldest = engine.enqueue_one(priority=4)
    engine.sql(
        "update onecommit.ready set created_at = created_at - interval '10 minutes' where job_id = %s",
        oldest,
    )
    assert engine.claim(1).job_ids == [oldest]


def test_aging_is_a_setting_of_the_queue(engine: Engine):
    """A queue may age faster or slower than others."""
    old = engine.enqueue_one(priority=4)
    engine.enqueue_one(priority=1)
    engine.sql(
        "update onecommit.ready set created_at = created_at - interval '10 minutes' where job_id = %s",
        old,
    )
    engine.sql("update onecommit.queue set aging = '1 day'")
    assert engine.claim(1).job_ids != [old]


def test_a_closed_head_does_not_age(engine: Engine):
    """Only what still waits lifts its lane."""
    taken = engine.enqueue_one(priority=4)
    engine.claim()
    engine.sql(
        "update onecommit.ready set created_at = created_at - interval '1 day' where job_id = %s",
        taken,
    )
    engine.enqueue_one(priority=4)
    urgent = engine.enqueue_one(priority=1)
    assert engine.claim(1).job_ids == [urgent]


def test_a_paused_queue_hands_out_nothing_and_takes_everything(engine: Engine):
    """What runs goes on; resuming hands out what came meanwhile."""
    [running] = engine.take()
    engine.pause()
    job = engine.enqueue_one()
    assert (engine.claim().status, engine.claim().job_ids) == ("paused", [])
    assert engine.complete([running]) == ["closed"]
    engine.resume()
    assert engine.claim().job_ids == [job]


def test_pausing_twice_is_harmless(engine: Engine):
    """And leaves its audit rows."""
    engine.enqueue()
    engine.pause()
    engine.pause()
    engine.resume()
    actions = engine.sql(
        "select action, subject, actor, reason from onecommit.operator_action order by action_id"
    )
    assert [tuple(a) for a in actions] == [
        ("pause_queue", "q", "a", "r"),
        ("pause_queue", "q", "a", "r"),
        ("resume_queue", "q", "a", "r"),
    ]


def test_a_lifetime_is_a_deadline_for_the_batch(engine: Engine):
    """On the database clock; without one there is none."""
    engine.enqueue(2)
    [batch] = engine.claim(1, lifetime_us=60_000_000).batches
    assert (batch.deadline - batch.claimed_at).total_seconds() == 60
    assert engine.claim(1).batches[0].deadline is None


def test_a_cancelled_row_is_passed_over_and_counted_as_seen(engine: Engine):
    """It costs the claim nothing but a place in its limit, and the frontier goes over it."""
    jobs = engine.enqueue(5).job_ids
    engine.cancel(jobs[0], jobs[2])
    assert [a.job_id for a in engine.drain(limit=2)] == [jobs[1], jobs[3], jobs[4]]
    lane = engine.value("select lane from onecommit.lane where queue = 'q'")
    assert engine.lane_state(lane).frontier == 5


def test_a_whole_look_of_cancelled_rows_is_not_the_end(engine: Engine):
    """The worker is told to come back, not to sleep."""
    jobs = engine.enqueue(6).job_ids
    engine.cancel(*jobs[:4])
    first = engine.claim(4)
    assert first.job_ids == []
    assert first.status in {"more", "pending"}
    assert engine.claim(4).job_ids == jobs[4:]


def test_a_rolled_back_enqueue_at_the_end_keeps_the_worker_polling(engine: Engine):
    """Its number may still come, as far as the lane can tell; the next row behind it settles the matter."""
    engine.call("adopt_lanes", p_queue="q")
    with engine.open():
        engine.enqueue()
        engine.rollback()
    assert engine.claim().status == "pending"
    job = engine.enqueue_one()
    assert [a.job_id for a in engine.drain()] == [job]
    assert engine.claim().status == "empty"


def test_many_workers_share_a_queue(store: Store):
    """Each job goes to one of them."""
    workers = [store.engine() for _ in range(4)]
    jobs = workers[0].enqueue(40).job_ids
    taken = [job for _ in range(4) for worker in workers for job in worker.claim(3).job_ids]
    assert sorted(taken) == jobs


def test_an_idle_claim_writes_nothing(engine: Engine):
    """Polling an empty queue leaves no rows behind."""
    engine.take()
    before = engine.value("select count(*) from onecommit.claim")
    for _ in range(5):
        engine.claim()
    assert engine.value("select count(*) from onecommit.claim") == before
