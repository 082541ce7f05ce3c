"""Caller-owned finalization as it was promised, by each authority: the claim's receipt, the lease of an attempt that was
materialized, and that lease alone when the claim is reclaimed.
"""

from collections.abc import Iterator

import psycopg
import pytest

from tests.engine import AUTHORITIES, Attempt, Engine
from tests.stores import Store, store
from tests.strict import engine_of, shared_store

__all__ = ["shared_store", "store"]
pytestmark = [
    pytest.mark.pg,
    pytest.mark.parametrize("authority", AUTHORITIES),
]

ROWS = "select count(*) from app.invoice"


@pytest.fixture
def engine(store: Store) -> Iterator[Engine]:
    """Who enqueues, claims, rescues and reads."""
    with engine_of(store, "application") as engine:
        yield engine


@pytest.fixture
def attempt(store: Store, engine: Engine, authority: str) -> Attempt:
    """The open attempt of a job with a unique key."""
    [attempt] = engine.take(unique={"key": "ab"})
    store.engine().under(authority, attempt)
    return attempt


@pytest.fixture
def caller(store: Store, attempt: Attempt) -> Iterator[Engine]:
    """An application that has written its row and not yet completed, as a login that may complete and enqueue."""
    with engine_of(store, "caller") as caller:
        caller.begin().sql("insert into app.invoice values (%s)", attempt.job_id)
        yield caller


def assert_cannot_commit(caller: Engine, attempt: Attempt, observer: Engine) -> None:
    """The completion is refused, and a commit after it is none."""
    with pytest.raises(psycopg.Error) as caught:
        caller.complete_job(attempt)
    assert caught.value.sqlstate == "OC001"
    caller.commit()
    assert observer.value(ROWS) == 0


def test_commit(engine: Engine, caller: Engine, attempt: Attempt):
    """Rows and completion become visible at once."""
    caller.complete_job(attempt)
    assert (engine.value(ROWS), engine.state(attempt.job_id)) == (0, "running")
    caller.commit()
    assert (engine.value(ROWS), engine.state(attempt.job_id)) == (1, "completed")


def test_rollback(engine: Engine, caller: Engine, attempt: Attempt):
    """Neither becomes visible, and the attempt can still be completed."""
    caller.complete_job(attempt)
    caller.rollback()
    assert (engine.value(ROWS), engine.state(attempt.job_id)) == (0, "running")
    assert engine.complete_job(attempt).outcome == "completed"


def test_stale_lease(engine: Engine, caller: Engine, attempt: Attempt):
    """An attempt that was retried meanwhile cannot commit."""
    assert engine.finish([attempt], "retried", lock=True) == ["closed"]
    assert_cannot_commit(caller, attempt, engine)
    assert engine.state(attempt.job_id) == "scheduled"


def test_rescue_wins(engine: Engine, caller: Engine, attempt: Attempt):
    """A caller that comes after the rescue cannot commit."""
    engine.retire()
    assert engine.rescue().rescued == 1
    assert_cannot_commit(caller, attempt, engine)
    assert engine.state(attempt.job_id) == "scheduled"


def test_completion_wins(engine: Engine, caller: Engine, attempt: Attempt):
    """A rescue that comes while the caller's commit is on its way, or later, leaves the attempt alone."""
    caller.complete_job(attempt)
    engine.retire()
    assert engine.rescue().rescued == 0
    caller.commit()
    assert engine.rescue().rescued == 0
    assert (engine.value(ROWS), engine.state(attempt.job_id)) == (1, "completed")


@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_follow_up_insert(engine: Engine, caller: Engine, attempt: Attempt, end: str):
    """A job that the caller enqueues exists exactly if the completion does."""
    follow_up = caller.enqueue_one()
    caller.complete_job(attempt)
    getattr(caller, end)()
    assert engine.state(follow_up) == ("ready" if end == "commit" else None)


@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_uniqueness(engine: Engine, caller: Engine, attempt: Attempt, end: str):
    """The job's unique key is free exactly from the commit on."""
    caller.complete_job(attempt)
    getattr(caller, end)()
    again = engine.enqueue(options={"unique": {"key": "ab"}})
    assert again.created == [end == "commit"]


def test_progress_and_terminal_hydration(
    store: Store, engine: Engine, caller: Engine, attempt: Attempt
):
    """The last progress moves into the history, where the finished job is found whole."""
    engine.set_progress([attempt], {"half": True})
    caller.complete_job(attempt, progress={"all": True})
    caller.commit()
    job = engine.job(attempt.job_id)
    assert (job.state, job.outcome, job.attempt) == ("completed", "completed", 1)
    assert (job.kind, job.args) == (attempt.kind, attempt.args)
    assert job.detail.replace(" ", "") == '{"progress":{"all":true}}'
    assert store.engine().value("select count(*) from onecommit.progress") == 0
