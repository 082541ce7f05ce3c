"""What stricter isolation levels change: a lost race is a serialization failure, and some calls refuse them."""

import psycopg
import pytest

from tests.engine import Attempt, Engine
from tests.races.closers import CLOSERS
from tests.stores import Store

pytestmark = pytest.mark.pg

STRICT = pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
WINNERS = pytest.mark.parametrize("winner", CLOSERS)
REFUSING = {
    "claim_jobs": lambda engine: engine.claim(),
    "rescue_jobs": lambda engine: engine.rescue(),
    "cancel_jobs": lambda engine: engine.cancel(1),
    "tend_ring": lambda engine: engine.tend(),
}


@STRICT
@WINNERS
def test_a_race_lost_since_the_snapshot_is_a_serialization_failure(
    store: Store, attempt: Attempt, isolation: str, winner: str
):
    """complete_job cannot see who won, so it asks for a retry instead of calling the attempt stale."""
    caller = store.engine().begin(isolation)
    caller.sql("insert into app.invoice values (%s)", attempt.job_id)
    with store.engine().open() as other:
        assert CLOSERS[winner].run(other, attempt) == "closed"
    with pytest.raises(psycopg.errors.SerializationFailure):
        caller.complete_job(attempt)
    caller.rollback()
    assert caller.state(attempt.job_id) == CLOSERS[winner].state


@STRICT
@WINNERS
def test_a_race_lost_while_waiting_is_a_serialization_failure(
    store: Store, attempt: Attempt, isolation: str, winner: str
):
    """The wait for the winner ends in 40001, whatever lock it was for."""
    first, caller = store.engine().begin(), store.engine().begin(isolation)
    assert CLOSERS[winner].run(first, attempt) == "closed"
    with store.blocked(caller, caller.complete_job, attempt, by=first) as answer:
        first.commit()
    assert isinstance(answer.exception(), psycopg.errors.SerializationFailure)
    caller.rollback()


@STRICT
def test_the_retry_of_a_lost_race_is_told_the_truth(store: Store, attempt: Attempt, isolation: str):
    """A new snapshot sees the winner: the token is stale."""
    store.engine().complete([attempt])
    with pytest.raises(psycopg.Error) as refused, store.engine().open(isolation) as caller:
        caller.complete_job(attempt)
    assert refused.value.sqlstate == "OC001"


@STRICT
def test_completions_of_different_jobs_do_not_disturb_each_other(store: Store, isolation: str):
    """Two open finalizing transactions both commit: no spurious serialization failure."""
    attempts = store.engine().take(8)
    callers = [store.engine().begin(isolation) for _ in attempts]
    for caller, attempt in zip(callers, attempts, strict=True):
        caller.sql("insert into app.invoice values (%s)", attempt.job_id)
        caller.complete_job(attempt)
    for caller in callers:
        caller.commit()
    assert {store.engine().state(a.job_id) for a in attempts} == {"completed"}


@STRICT
def test_producers_may_use_any_isolation(store: Store, isolation: str):
    """Jobs enqueued under a strict level are claimed like any others."""
    with store.engine().open(isolation) as producer:
        first = producer.enqueue_one()
        second = producer.enqueue_one(priority=1, unique={"key": "ab"})
    assert set(store.engine().claim().job_ids) == {first, second}


@STRICT
@pytest.mark.parametrize("function", REFUSING)
def test_what_must_look_again_after_its_locks_refuses_old_snapshots(
    engine: Engine, isolation: str, function: str
):
    """A snapshot older than the locks would miss what their last holder committed."""
    engine.register()
    with pytest.raises(psycopg.Error) as refused, engine.open(isolation):
        REFUSING[function](engine)
    assert refused.value.sqlstate == "OC006"


@pytest.mark.parametrize("function", REFUSING)
def test_the_default_isolation_of_the_session_does_not_slip_through(engine: Engine, function: str):
    """A database whose default is stricter gets the same refusal, not a wrong answer."""
    engine.register()
    engine.sql("set default_transaction_isolation = 'serializable'")
    with pytest.raises(psycopg.Error) as refused:
        REFUSING[function](engine)
    assert refused.value.sqlstate == "OC006"
