"""What the product does to several jobs at once waits in one order of locks, so that PostgreSQL has no victim to choose.

One call is stopped in its middle by a lock that a third session holds; the other goes as far as it can; then the third
lets go. Whoever takes locks out of order then waits for the one that waits for it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any

import psycopg
import pytest

from tests import observe
from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

KEY_OF = "select from onecommit.unique_key where job_id = any (%s) order by key for update"
ATTEMPT_LOCK = """
select pg_advisory_xact_lock(onecommit.lock_class('onecommit.completion'), onecommit.attempt_key(%s, %s))
"""


def meet(
    store: Store, holder: Engine, one: tuple[Engine, Callable], two: tuple[Engine, Callable]
) -> tuple[Any, Any]:
    """The answers of two calls, of which the first was stopped by the holder and the second then went as far as it could."""
    first = store.background(one[1], one[0])
    observe.wait_until_blocked(store.observer, one[0].pid, holder.pid)
    second = store.background(two[1], two[0])
    go_on(store, second, two[0])
    holder.rollback()
    return tuple(each.result(timeout=observe.PATIENCE_SECONDS) for each in (first, second))


def go_on(store: Store, call: Future, engine: Engine) -> None:
    """Until it has its answer, or waits for somebody."""
    blocked = {"pid": engine.pid, "by": None}
    while not call.done() and not store.observer.execute(observe.BLOCKED, blocked).fetchone()[0]:
        wait([call], timeout=observe.PAUSE_SECONDS)


def complete_jobs(engine: Engine, attempts: Sequence[Attempt]) -> None:
    assert set(engine.complete(attempts, side=[a.job_id for a in attempts])) == {"closed"}


def finish_jobs(engine: Engine, attempts: Sequence[Attempt]) -> None:
    assert set(engine.finish(attempts, "failed")) == {"closed"}


def rescue_jobs(engine: Engine, attempts: Sequence[Attempt]) -> None:
    assert engine.rescue().rescued == len(attempts)


def cancel_jobs(engine: Engine, attempts: Sequence[Attempt]) -> None:
    assert set(engine.cancel(*(a.job_id for a in attempts)).values()) == {"cancelled"}


def close_with_follow_ups(engine: Engine, attempts: Sequence[Attempt]) -> None:
    side = [a.job_id for a in attempts]
    assert set(engine.close_with_follow_ups(attempts, side=side)) == {"closed"}


CLOSERS = pytest.mark.parametrize(
    "close", [complete_jobs, finish_jobs, rescue_jobs, cancel_jobs, close_with_follow_ups]
)
LEASED = pytest.mark.parametrize(
    "leased", [(), (0,), (1,), (0, 1)], ids=["no lease", "first", "second", "leases"]
)


def two_attempts(store: Store, leased: Sequence[int]) -> list[Attempt]:
    """The last attempts of two jobs with unique keys, whose worker has ended."""
    worker = store.engine()
    worker.enqueue(2, options=[{"unique": {"key": key}, "max_attempts": 1} for key in ("aa", "bb")])
    attempts = list(worker.claim().attempts)
    worker.set_progress(attempts, {"done": 1})
    assert all(worker.materialize(attempts[number]) for number in leased)
    worker.retire()
    return attempts


@CLOSERS
@LEASED
def test_the_end_of_several_jobs_and_a_cancel_of_their_dependants_take_turns(
    store: Store, close: Callable, leased: Sequence[int]
):
    """The dependants of all of them are locked in id order, and not those of each job when it ends."""
    one, two = two_attempts(store, leased)
    holder, closer, operator = store.engine(), store.engine(), store.engine()
    low = operator.enqueue_one(after=two.job_id)
    high = operator.enqueue_one(after=one.job_id)
    holder.begin().sql(KEY_OF, [two.job_id])
    _, cancelled = meet(
        store,
        holder,
        (closer, lambda engine: close(engine, [one, two])),
        (operator, lambda engine: engine.cancel(low, high)),
    )
    assert cancelled == {low: "cancelled", high: "cancelled"}
    assert {operator.state(job) for job in (low, high)} == {"cancelled"}


@CLOSERS
@LEASED
def test_the_end_of_several_jobs_and_their_progress_take_turns(
    store: Store, close: Callable, leased: Sequence[int]
):
    """Progress is removed in id order, however the jobs were named and whatever holds their attempts."""
    one, two = two_attempts(store, leased)
    holder, closer, worker = store.engine(), store.engine(), store.engine()
    holder.begin().sql(KEY_OF, [one.job_id])
    meet(
        store,
        holder,
        (closer, lambda engine: close(engine, [two, one])),
        (worker, lambda engine: engine.set_progress([one, two], {"done": 2})),
    )
    assert worker.value("select count(*) from onecommit.progress") == 0


@pytest.mark.parametrize("end", ["complete_jobs", "finish_jobs"])
def test_a_cancel_of_several_jobs_and_a_batch_that_ends_them_take_turns(store: Store, end: str):
    """Completion keys are taken in the order of lanes and numbers, which is not that of ids."""
    worker, holder, operator = store.engine(), store.engine(), store.engine()
    worker.take()  # the queue's lane comes first
    jobs = [
        worker.enqueue_one(queue=queue, unique={"key": key})
        for queue, key in (("other", "aa"), ("q", "bb"))
    ]
    attempts = [*worker.claim(queue="other").attempts, *worker.claim().attempts]
    assert [a.job_id for a in attempts] == jobs
    assert attempts[0].lane > attempts[1].lane
    holder.begin().sql(KEY_OF, jobs)
    cancelled, verdicts = meet(
        store,
        holder,
        (operator, lambda engine: engine.cancel(*jobs)),
        (
            worker,
            lambda engine: (
                engine.complete(attempts)
                if end == "complete_jobs"
                else engine.finish(attempts, "retried")
            ),
        ),
    )
    assert cancelled == dict.fromkeys(jobs, "cancelled")
    assert verdicts == ["stale", "stale"]


def test_a_cancel_of_several_jobs_locks_their_attempts_before_it_takes_a_completion_key(
    store: Store,
):
    """While it waits for a caller's commit, nothing that it will end is kept from ending by itself."""
    worker, operator, holder = store.engine(), store.engine(), store.engine()
    one, two = worker.take(2)
    holder.begin().sql(ATTEMPT_LOCK, two.job_id, two.run_lease)
    worker.sql("set lock_timeout = '5s'")
    with store.blocked(operator, operator.cancel, one.job_id, two.job_id, by=holder) as cancelled:
        assert worker.complete([one]) == ["closed"]
        holder.rollback()
    assert cancelled.result() == {one.job_id: "already_finished", two.job_id: "cancelled"}


def test_a_cancel_of_a_dependant_that_became_ready_meanwhile_waits_for_it_with_nothing_held(
    store: Store,
):
    """It waited for the parent's end; then the job is an attempt, whose worker wants the rows after it."""
    worker, caller, operator, holder = (store.engine() for _ in range(4))
    [parent] = worker.take()
    child = worker.enqueue_one(after=parent.job_id)
    grandchild = worker.enqueue_one(after=child)
    # The first attempt of a dependant has lease 2.
    holder.begin().sql(ATTEMPT_LOCK, child, 2)
    caller.begin().complete_job(parent)
    cancelled = store.background(operator.cancel, child, grandchild)
    observe.wait_until_blocked(store.observer, operator.pid, caller.pid)
    caller.commit()
    observe.wait_until_blocked(store.observer, operator.pid, holder.pid)
    [attempt] = worker.claim().attempts
    assert attempt.job_id == child
    completed = store.background(worker.complete, [attempt])
    go_on(store, completed, worker)
    holder.rollback()
    assert completed.result(timeout=observe.PATIENCE_SECONDS) == ["closed"]
    assert cancelled.result(timeout=observe.PATIENCE_SECONDS) == {
        child: "already_finished",
        grandchild: "cancelled",
    }


def test_a_retry_and_a_purge_of_the_same_dead_letters_take_turns(store: Store):
    """Both lock them in id order, and not as they lie in the table."""
    worker, holder, first, second = (store.engine() for _ in range(4))
    one, two = two_attempts(store, ())
    for attempt in (two, one):
        worker.finish([attempt], "failed")
    jobs = (one.job_id, two.job_id)
    holder.begin().sql("select from onecommit.dead_letter where job_id = %s for update", jobs[0])
    retried, purged = meet(
        store,
        holder,
        (first, lambda engine: engine.retry_dead(*jobs)),
        (second, lambda engine: engine.purge_dead(*jobs)),
    )
    assert retried == dict.fromkeys(jobs, "retried")
    assert purged == dict.fromkeys(jobs, "not_found")


def test_a_caller_who_ends_several_jobs_out_of_order_is_the_one_exception(store: Store):
    """Nobody can order what a transaction will end later; nothing is lost with the victim, who tries again."""
    worker, caller, operator = store.engine(), store.engine(), store.engine()
    one, two = worker.take(2)
    low = worker.enqueue_one(after=two.job_id)
    high = worker.enqueue_one(after=one.job_id)
    operator.sql("set deadlock_timeout = '1h'")  # whose turn comes first is ended
    caller.begin().complete_job(one)
    with store.blocked(operator, operator.cancel, low, high, by=caller) as cancelled:
        with pytest.raises(psycopg.errors.DeadlockDetected):
            caller.complete_job(two)
        caller.rollback()
    assert cancelled.result() == {low: "cancelled", high: "cancelled"}
    with caller.open():
        assert [caller.complete_job(attempt).outcome for attempt in (one, two)] == ["completed"] * 2
