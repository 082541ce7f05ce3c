"""What operators do to jobs, what they are told, and the row that remembers it."""

import json

import pytest

from tests.engine import HOUR_US, Engine

pytestmark = pytest.mark.pg


def jobs_in_every_state(engine: Engine) -> dict[str, int]:
    """One job in each state that a job can be in, by the ways that lead there."""
    running, leased, completed, failed, discarded, retried, cancelled = engine.take(7)
    assert engine.materialize(leased)
    engine.complete([completed])
    engine.finish([failed], "failed", code="boom", detail='{"error": "e"}')
    engine.finish([discarded], "discarded")
    engine.finish([retried], "retried", delay_us=HOUR_US)
    engine.cancel(cancelled.job_id)
    ids = {
        "running": running,
        "leased": leased,
        "completed": completed,
        "failed": failed,
        "discarded": discarded,
        "retried": retried,
    }
    return {name: attempt.job_id for name, attempt in ids.items()} | {
        "cancelled": cancelled.job_id,
        "scheduled": engine.enqueue_one(delay_us=HOUR_US),
        "ready": engine.enqueue_one(),
        "urgent": engine.enqueue_one(priority=1),
        "blocked": engine.enqueue_one(after=running.job_id),
    }


STATES = {
    "running": "running",
    "leased": "running",
    "completed": "completed",
    "failed": "dead",
    "discarded": "dead",
    "retried": "scheduled",
    "cancelled": "cancelled",
    "scheduled": "scheduled",
    "ready": "ready",
    "urgent": "ready",
    "blocked": "blocked",
}


def test_every_state_is_shown(engine: Engine):
    """By id, in lists, and in the counts of the queue."""
    jobs = jobs_in_every_state(engine)
    assert {name: engine.state(job) for name, job in jobs.items()} == STATES
    for state in set(STATES.values()):
        listed = engine.call(
            "list_jobs", p_state=state, p_queue=None, p_kind=None, p_limit=100, p_before=None
        )
        assert [job.job_id for job in listed] == sorted(
            (jobs[n] for n in jobs if STATES[n] == state), reverse=True
        )
        assert {(job.args, job.detail) for job in listed} == {(None, None)}
    [queue] = engine.call("list_queues")
    counts = {
        "queue": "q",
        "paused": False,
        "lanes": 2,
        "ready": 2,
        "scheduled": 2,
        "dead": 2,
        "running": 2,
        "caller_owned": True,
        "blocked": 1,
    }
    assert queue._asdict() == counts


def test_a_list_is_read_page_by_page(engine: Engine):
    """Newest first, below the last id seen; filters hold on every page."""
    jobs = engine.enqueue(5, kinds=["a"]).job_ids
    engine.enqueue(5, kinds=["b"])
    engine.enqueue(5, kinds=["a"], queue="other")
    seen, before = [], None
    while page := engine.call(
        "list_jobs", p_state="ready", p_queue="q", p_kind="a", p_limit=2, p_before=before
    ):
        seen += [job.job_id for job in page]
        before = seen[-1]
    assert seen == jobs[::-1]
    assert (
        len(
            engine.call(
                "list_jobs", p_state=None, p_queue=None, p_kind=None, p_limit=1000, p_before=None
            )
        )
        == 15
    )


def unfinished(engine: Engine, **filters: object) -> list[int]:
    named = {
        "p_states": None, "p_queue": None, "p_kind": None, "p_tags": None, "p_limit": 100, "p_before": None,
    }  # fmt: skip
    return [row.job_id for row in engine.call("unfinished_jobs", **named | filters)]


def test_unfinished_jobs_are_found_in_their_states(engine: Engine):
    """Each once, newest first; by default in every state that is not an end."""
    jobs = jobs_in_every_state(engine)
    for states in (["ready"], ["running", "scheduled"], ["waiting"], ["blocked", "ready"]):
        expected = sorted((jobs[n] for n in jobs if STATES[n] in states), reverse=True)
        assert unfinished(engine, p_states=states) == expected
    every = sorted((jobs[name] for name in jobs if CANCELLED[name] == "cancelled"), reverse=True)
    assert unfinished(engine) == every
    assert unfinished(engine, p_limit=3) == every[:3]
    assert unfinished(engine, p_limit=3, p_before=every[2]) == every[3:6]
    assert set(engine.cancel(*every).values()) == {"cancelled"}
    assert unfinished(engine) == []


def test_unfinished_jobs_are_found_by_queue_kind_and_tags(engine: Engine):
    """What is given must all hold; of several tags a job has each."""
    first = engine.enqueue_one(tags=["import", "monday"])
    engine.enqueue_one(tags=["import"], queue="other")
    engine.enqueue_one(kind="a", tags=["monday"])
    later = engine.enqueue_one(kind="a", tags=["monday", "import"], delay_us=HOUR_US)
    engine.enqueue_one(kind="a")
    assert unfinished(engine, p_queue="q", p_tags=["import"]) == [later, first]
    assert unfinished(engine, p_tags=["monday", "import"]) == [later, first]
    assert unfinished(engine, p_kind="a", p_tags=["import"]) == [later]
    assert unfinished(engine, p_kind="a", p_tags=["import"], p_states=["ready"]) == []
    assert unfinished(engine, p_tags=["impor"]) == []


def test_a_job_that_nobody_knows_is_no_row(engine: Engine):
    """Not an error."""
    assert engine.job(10**15) is None


CANCELLED = {
    name: "already_finished" if STATES[name] in {"completed", "dead", "cancelled"} else "cancelled"
    for name in STATES
}


def test_cancelling_says_what_happened_to_each(engine: Engine):
    """A finished job stays what it was; all others run no more."""
    jobs = jobs_in_every_state(engine)
    results = engine.cancel(*jobs.values(), 10**15)
    assert {name: results[job] for name, job in jobs.items()} == CANCELLED
    assert results[10**15] == "not_found"
    for name, job in jobs.items():
        assert engine.state(job) == (
            "cancelled" if CANCELLED[name] == "cancelled" else STATES[name]
        )
    engine.sql("update onecommit.scheduled set run_at = now()")
    engine.promote()
    assert engine.drain() == []
    assert set(engine.cancel(*jobs.values()).values()) == {"already_finished"}


@pytest.mark.parametrize("delay", [{}, {"delay_us": HOUR_US}], ids=["ready", "scheduled"])
def test_a_job_cancelled_before_it_ran_never_ran(engine: Engine, delay: dict):
    """Also after claims have gone past its row."""
    job = engine.enqueue_one(**delay)
    engine.cancel(job)
    engine.enqueue()
    engine.drain()
    seen = engine.job(job)
    assert (seen.state, seen.attempt, seen.run_lease) == ("cancelled", 0, 0)


def test_ids_may_repeat_and_be_null(engine: Engine):
    """Each job is answered once."""
    job = engine.enqueue_one()
    rows = engine.call("cancel_jobs", p_job_ids=[job, None, job], p_actor="a", p_reason="r")
    assert [tuple(row) for row in rows] == [(job, "cancelled")]
    assert engine.cancel() == {}


def test_a_dead_letter_keeps_the_whole_job(engine: Engine):
    """Arguments, options, the error, and how often it was tried."""
    [job] = engine.enqueue(
        args=['{"a": 1}'], options={"max_attempts": 1, "tags": ["t"], "priority": 3}
    ).job_ids
    engine.finish(engine.claim().attempts, "retried", code="boom", detail='{"error": "e"}')
    dead = engine.job(job)
    assert (dead.state, dead.outcome, dead.code, dead.attempt) == ("dead", "failed", "boom", 1)
    assert (dead.args, json.loads(dead.options), json.loads(dead.detail)) == (
        '{"a": 1}',
        {"tags": ["t"]},
        {"error": "e"},
    )


def test_a_retried_dead_letter_starts_over(engine: Engine):
    """In its own lane with all its attempts, and with a lease of its own."""
    jobs = jobs_in_every_state(engine)
    engine.drain()
    results = engine.retry_dead(*jobs.values(), 10**15)
    assert {job for job, result in results.items() if result == "retried"} == {
        jobs["failed"],
        jobs["discarded"],
    }
    assert set(results.values()) == {"retried", "not_found"}
    again = engine.claim().attempts
    assert [(a.job_id, a.number, a.run_lease) for a in again] == [
        (jobs["failed"], 1, 2),
        (jobs["discarded"], 1, 2),
    ]
    engine.complete(again)
    assert engine.state(jobs["failed"]) == "completed"


def test_a_purged_dead_letter_is_gone(engine: Engine):
    """Nobody can retry it any more."""
    jobs = jobs_in_every_state(engine)
    results = engine.purge_dead(*jobs.values())
    assert {job for job, result in results.items() if result == "purged"} == {
        jobs["failed"],
        jobs["discarded"],
    }
    assert engine.retry_dead(jobs["failed"]) == {jobs["failed"]: "not_found"}
    assert engine.job(jobs["failed"]) is None


@pytest.mark.parametrize("act", [Engine.cancel, Engine.retry_dead, Engine.purge_dead])
def test_each_action_leaves_its_audit_row(engine: Engine, act):
    """With the transaction, not without it."""
    with engine.open():
        act(engine, 7, 8)
        engine.rollback()
    assert engine.value("select count(*) from onecommit.operator_action") == 0
    act(engine, 7, 8)
    [row] = engine.sql("select subject, actor, reason from onecommit.operator_action")
    assert tuple(row) == ("7,8", "a", "r")


def test_workers_are_listed_with_what_they_said(engine: Engine):
    """Alive and ended ones."""
    engine.register(queues=["a", "b"])
    engine.retire()
    ended = engine.worker
    engine.register()
    first, second = engine.call("list_workers")
    assert (first.worker, first.info, first.ended_at is None) == (
        ended,
        {"queues": ["a", "b"], "capabilities": ["caller_owned_v1"]},
        False,
    )
    assert (second.worker, second.epoch, second.ended_at) == (engine.worker, engine.epoch, None)


def test_what_workers_hold_is_counted(engine: Engine):
    """Claimed and leased attempts run, and wait while a callback is awaited; what has ended is not counted."""
    first = engine.register()
    running, leased, waiting, completed = engine.take(4)
    assert engine.materialize(leased)
    engine.callback(leased)
    callback = engine.callback(waiting)
    engine.wait_for(waiting, callback)
    engine.complete([completed])
    second = engine.register()
    engine.take(2, priority=1)
    assert engine.call("lead", p_worker=second, p_ttl_us=HOUR_US)[0][0]
    loads = [tuple(row) for row in engine.call("worker_loads")]
    assert loads == [(first, 2, 1, 0, False), (second, 2, 0, 0, True)]
    engine.retire(first)
    assert [row.worker for row in engine.call("worker_loads")] == [first, second]
    assert engine.resume_external(callback) == "accepted"
    assert engine.call("worker_loads")[0][1:3] == (3, 0)
    engine.cancel(running.job_id, leased.job_id, waiting.job_id)
    assert engine.call("worker_loads")[0][1:3] == (0, 0)


def test_the_ring_is_shown(engine: Engine):
    """One row for each chapter that stands."""
    engine.take()
    engine.sql("update onecommit.ring set chapter_lifetime = '1us'")
    assert engine.tend() == ("rotate", 2)
    rows = engine.call("ring_status")
    assert [(r.chapter, r.slot, r.is_head, r.below_tail) for r in rows] == [
        (1, 1, False, False),
        (2, 2, True, False),
    ]
    assert rows[0].closed_at is not None
    assert rows[0].bytes > 0


def test_added_lanes_lie_in_the_pool(engine: Engine):
    """The call answers with the size of the pool; nothing is used until a queue adopts it."""
    with engine.open():
        pool = engine.value("select count(*) from onecommit.lane where lane > 0")
        assert engine.call("add_lanes", p_count=2)[0].add_lanes == pool + 2
        added = engine.sql("select queue, frontier from onecommit.lane order by lane desc limit 2")
        assert [tuple(lane) for lane in added] == [(None, 0)] * 2
        engine.rollback()
