"""Attempts that nobody works on any more are closed as rescued, and run again as often as they may."""

import pytest

from tests.engine import HOUR_US, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg


def last_heartbeat(engine: Engine, ago: str) -> None:
    """Let the worker's last sign of life be so long ago."""
    engine.sql(
        "update onecommit.worker set heartbeat_at = now() - %s::interval where worker = %s",
        ago,
        engine.worker,
    )


def test_jobs_of_a_silent_worker_run_again(store: Store, engine: Engine):
    """It lost its lease; what it sends later is stale."""
    attempts = engine.take(3)
    engine.complete(attempts[:1])
    last_heartbeat(engine, "2 minutes")
    rescuer = store.engine()
    assert tuple(rescuer.rescue(window_us=HOUR_US)) == (0, False, [])
    assert rescuer.rescue(window_us=60_000_000)[:2] == (2, False)
    assert engine.complete(attempts) == ["closed", "stale", "stale"]
    rescuer.promote()
    again = rescuer.claim().attempts
    assert [(a.job_id, a.run_lease, a.number) for a in again] == [
        (a.job_id, 2, 2) for a in attempts[1:]
    ]


@pytest.mark.parametrize("materialized", [False, True], ids=["claimed", "leased"])
def test_a_job_that_kills_its_workers_ends_in_the_dead_letters(engine: Engine, materialized: bool):
    """A loss counts as an attempt."""
    job = engine.enqueue_one(max_attempts=3)
    for number in (1, 2, 3):
        engine.register()
        [attempt] = engine.claim().attempts
        assert attempt.number == number
        if materialized:
            assert engine.materialize(attempt)
        engine.retire()
        assert engine.rescue().rescued == 1
        engine.sql("update onecommit.scheduled set run_at = now()")
        engine.promote()
    dead = engine.job(job)
    assert (dead.state, dead.outcome, dead.code, dead.attempt) == (
        "dead",
        "rescued",
        "worker_lost",
        3,
    )


def test_the_first_loss_is_taken_for_the_workers_fault(engine: Engine):
    """Later ones wait, longer each time."""
    job = engine.enqueue_one()
    waits = []
    for _ in range(4):
        engine.register()
        engine.claim()
        engine.retire()
        engine.rescue()
        waits.append(
            engine.value(
                "select extract(epoch from run_at - now())::int from onecommit.scheduled where job_id = %s",
                job,
            )
        )
        engine.sql("update onecommit.scheduled set run_at = now()")
        engine.promote()
    assert waits == [0, 2, 4, 8]


@pytest.mark.parametrize("materialized", [False, True], ids=["claimed", "leased"])
def test_a_passed_deadline_is_rescued_from_a_living_worker(engine: Engine, materialized: bool):
    """And the worker is told, so that it may stop the handler."""
    engine.enqueue(1, options={"max_attempts": 1})
    [attempt] = engine.claim(lifetime_us=1).attempts
    if materialized:
        assert engine.materialize(attempt)
    [other] = engine.take()
    assert engine.rescue().rescued == 1
    dead = engine.job(attempt.job_id)
    assert (dead.state, dead.code) == ("dead", "deadline_passed")
    assert engine.state(other.job_id) == "running"
    if not materialized:
        assert engine.heartbeat().cancel_job_ids == [attempt.job_id]
    assert engine.claim() is not None


def test_a_step_is_bounded_and_says_whether_there_is_more(engine: Engine):
    """Advisory locks are finite."""
    engine.take(7)
    engine.retire()
    assert [engine.rescue(limit=3)[:2] for _ in range(3)] == [(3, True), (3, True), (1, False)]


def test_requests_below_the_oldest_open_one_are_not_looked_at(engine: Engine):
    """The worker itself says which of its requests are over."""
    engine.enqueue(2)
    engine.claim(1, request=1)
    [second] = engine.claim(1, request=2).attempts
    engine.heartbeat(oldest_request=2)
    engine.heartbeat(oldest_request=1)
    engine.retire()
    assert engine.rescue().rescued == 1
    assert engine.state(second.job_id) == "scheduled"


def test_an_ended_worker_is_remembered_until_its_attempts_are_closed(engine: Engine):
    """And then forgotten after a minute."""
    [attempt] = engine.take()
    engine.sql(
        "select pg_advisory_lock(onecommit.lock_class('onecommit.completion'), onecommit.attempt_key(%s, 1))",
        attempt.job_id,
    )
    engine.retire()
    engine.sql("update onecommit.worker set ended_at = now() - interval '2 minutes'")
    engine.complete([attempt])
    engine.register()
    engine.rescue()
    assert [w.worker for w in engine.call("list_workers")] == [engine.worker]


def test_an_attempt_whose_caller_is_in_flight_is_left_for_the_next_call(
    store: Store, engine: Engine
):
    """Its worker is not forgotten meanwhile."""
    one, two = engine.take(2)
    caller = store.engine().begin()
    caller.complete_job(one)
    engine.retire()
    engine.sql("update onecommit.worker set ended_at = now() - interval '2 minutes'")
    assert store.engine().rescue().rescued == 1
    caller.rollback()
    assert store.engine().rescue().rescued == 1
    assert {engine.state(a.job_id) for a in (one, two)} == {"scheduled"}


def test_old_cancellations_and_passed_windows_are_forgotten(engine: Engine):
    """By a rescue that finds nothing more to do."""
    engine.enqueue(1, options={"unique": {"key": "aa", "window_us": HOUR_US}})
    [attempt] = engine.claim().attempts
    engine.cancel(attempt.job_id)
    engine.sql("update onecommit.cancellation set at = at - interval '2 hours'")
    engine.rescue()
    assert engine.value("select count(*) from onecommit.unique_key") == 1
    engine.sql("update onecommit.unique_key set keep_until = now() - interval '1 second'")
    engine.rescue()
    assert (
        engine.value(
            "select (select count(*) from onecommit.cancellation) + (select count(*) from onecommit.unique_key)"
        )
        == 0
    )
