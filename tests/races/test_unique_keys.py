"""Of all jobs with one unique key at most one lives; whoever loses waits for the truth and is told the winner's id."""

import psycopg
import pytest

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg


def keyed(engine: Engine, *keys: str, window_us: int | None = None):
    """Enqueue one job for each key."""
    window = {} if window_us is None else {"window_us": window_us}
    return engine.enqueue(len(keys), options=[{"unique": {"key": key} | window} for key in keys])


def test_a_loser_waits_for_the_winner_and_is_told_its_job(store: Store):
    """The answer is the winner's committed id."""
    winner, loser = store.engine().begin(), store.engine()
    [job] = keyed(winner, "aa").job_ids
    with store.blocked(loser, keyed, loser, "aa", by=winner) as answer:
        winner.commit()
    assert (answer.result().job_ids, answer.result().created) == ([job], [False])
    assert loser.claim().job_ids == [job]


def test_a_loser_owns_the_key_when_the_winner_rolls_back(store: Store):
    """It was never told of a job that does not exist."""
    winner, loser = store.engine().begin(), store.engine()
    [job] = keyed(winner, "aa").job_ids
    with store.blocked(loser, keyed, loser, "aa", by=winner) as answer:
        winner.rollback()
    assert answer.result().created == [True]
    assert loser.claim().job_ids == answer.result().job_ids != [job]


def test_a_loser_waits_also_for_a_rolled_back_savepoint_only_so_far(store: Store):
    """A key taken in a savepoint is free as soon as that is rolled back."""
    winner, loser = store.engine().begin(), store.engine()
    winner.sql("savepoint a")
    keyed(winner, "aa")
    winner.sql("rollback to a")
    assert keyed(loser, "aa").created == [True]
    winner.commit()


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_strict_loser_is_asked_to_retry(store: Store, isolation: str):
    """Its snapshot cannot see the winner, so it gets 40001 rather than a wrong id."""
    winner, loser = store.engine().begin(), store.engine().begin(isolation)
    loser.sql("select 1")
    keyed(winner, "aa")
    with store.blocked(loser, keyed, loser, "aa", by=winner) as answer:
        winner.commit()
    assert isinstance(answer.exception(), psycopg.errors.SerializationFailure)
    loser.rollback()


def test_bulk_calls_with_the_same_keys_in_any_order_do_not_deadlock(store: Store):
    """Keys are taken in their own order, not in the caller's."""
    one, two = store.engine().begin(), store.engine()
    first = keyed(one, "cc", "aa", "bb")
    with store.blocked(two, keyed, two, "bb", "aa", "cc", by=one) as answer:
        one.commit()
    c, a, b = first.job_ids
    assert (answer.result().job_ids, answer.result().created) == ([b, a, c], [False] * 3)


def test_a_bulk_call_that_waits_holds_only_lower_keys(store: Store):
    """So whoever it waits for can go on to higher ones: the caller's order would be a deadlock here."""
    one, two = store.engine().begin(), store.engine().begin()
    keyed(one, "bb")
    with store.blocked(two, keyed, two, "cc", "bb", "aa", by=one) as answer:
        keyed(one, "cc")
        one.rollback()
    assert answer.result().created == [True] * 3
    two.commit()


def test_a_key_named_twice_in_one_call_makes_one_job(engine: Engine):
    """The first of them is created, the others are told its id."""
    answer = keyed(engine, "aa", "bb", "aa")
    assert answer.created == [True, True, False]
    assert answer.job_ids[0] == answer.job_ids[2]
    assert engine.claim().job_ids == answer.job_ids[:2]


def test_jobs_with_and_without_keys_may_travel_together(engine: Engine):
    """Only the keyed ones can be refused."""
    [held] = keyed(engine, "aa").job_ids
    answer = engine.enqueue(3, options=[{}, {"unique": {"key": "aa"}}, {"priority": 1}])
    assert answer.created == [True, False, True]
    assert answer.job_ids[1] == held


ENDINGS = {
    "complete_jobs": lambda e, a: e.complete([a], side=[a.job_id]),
    "complete_job": lambda e, a: e.complete_job(a),
    "failed": lambda e, a: e.finish([a], "failed"),
    "discarded": lambda e, a: e.finish([a], "discarded"),
    "finished as cancelled": lambda e, a: e.finish([a], "cancelled"),
    "cancel_jobs": lambda e, a: e.cancel(a.job_id),
    "last retry": lambda e, a: e.finish([a], "retried"),
    "last rescue": lambda e, _: (e.retire(), e.rescue()),
}
LIVING = {
    "running": lambda *_: None,
    "retried": lambda e, a: e.finish([a], "retried"),
    "snoozed": lambda e, a: e.finish([a], "snoozed"),
    "materialized": lambda e, a: e.materialize(a),
}


@pytest.mark.parametrize("materialized", [False, True], ids=["claimed", "leased"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_end_of_the_job_frees_its_key(engine: Engine, ending: str, materialized: bool):
    """However it ends, in the same transaction."""
    [attempt] = engine.take(1, unique={"key": "aa"}, max_attempts=1)
    if materialized:
        assert engine.materialize(attempt)
    with engine.open():
        ENDINGS[ending](engine, attempt)
        engine.rollback()
    assert keyed(engine, "aa").created == [False]
    ENDINGS[ending](engine, attempt)
    assert keyed(engine, "aa").created == [True]


@pytest.mark.parametrize("step", LIVING)
def test_a_living_job_keeps_its_key(engine: Engine, step: str):
    """A retry or a snooze is not an end."""
    [attempt] = engine.take(1, unique={"key": "aa"})
    LIVING[step](engine, attempt)
    answer = keyed(engine, "aa")
    assert (answer.job_ids, answer.created) == ([attempt.job_id], [False])


@pytest.mark.parametrize("delay", [{}, {"delay_us": 10**12}], ids=["waiting", "scheduled"])
def test_a_job_cancelled_before_it_ran_frees_its_key(engine: Engine, delay: dict):
    """Also one that still waits for its time."""
    [job] = engine.enqueue(options={"unique": {"key": "aa"}} | delay).job_ids
    assert keyed(engine, "aa").job_ids == [job]
    engine.cancel(job)
    assert keyed(engine, "aa").created == [True]


def test_a_window_outlives_the_job(engine: Engine):
    """Within the window the key stays taken, after it the next job gets it."""
    [job] = keyed(engine, "aa", window_us=10**10).job_ids
    [attempt] = engine.claim().attempts
    engine.complete([attempt], side=[job])
    again = keyed(engine, "aa", window_us=10**10)
    assert (again.job_ids, again.created) == ([job], [False])
    engine.sql("update onecommit.unique_key set keep_until = now() - interval '1 second'")
    assert keyed(engine, "aa").created == [True]


def test_a_window_that_passed_does_not_free_a_living_job(engine: Engine):
    """The job still holds its key."""
    [job] = keyed(engine, "aa", window_us=1).job_ids
    assert keyed(engine, "aa").job_ids == [job]


def test_completion_waits_for_nobody_else(store: Store):
    """A loser that waits for the key's row is answered by the completion, not the other way round."""
    [attempt] = store.engine().take(1, unique={"key": "aa"})
    caller = store.engine().begin()
    caller.complete_job(attempt)
    loser = store.engine()
    with store.blocked(loser, keyed, loser, "aa", by=caller) as answer:
        caller.commit()
    assert answer.result().created == [True]


def test_a_loser_that_stays_open_holds_up_nobody(store: Store):
    """It was told of the key's job and locks nothing of it: that job ends, and frees the key, at once."""
    worker, loser = store.engine(), store.engine()
    [attempt] = worker.take(1, unique={"key": "aa"})
    loser.begin()
    assert keyed(loser, "aa").created == [False]
    worker.sql("set lock_timeout = '1s'")
    assert worker.complete([attempt], side=[attempt.job_id]) == ["closed"]
    assert keyed(worker, "aa").created == [True]
    loser.rollback()
