"""The locks of complete_job are taken in the order that its header states, seen in pg_locks one by one."""

import pytest

from tests.engine import Attempt
from tests.stores import Store

pytestmark = pytest.mark.pg

# Advisory locks by the table whose oid is their class, relation locks where rows are written or locked.
REACHED = """
select coalesce(array_agg(distinct case when l.locktype = 'advisory' then l.classid::regclass || ' (advisory)'
                                        else l.relation::regclass::text end), '{}')
from pg_locks l
where l.pid = %s and l.granted and (l.locktype = 'advisory' or l.locktype = 'relation'
    and l.mode in ('RowShareLock', 'RowExclusiveLock')
    and l.relation::regclass::text in ('onecommit.completion', 'onecommit.unique_key', 'onecommit.progress'))
"""
SCHEMA_LOCK = "select pg_advisory_xact_lock(onecommit.schema_lock_class(), 0)"
ATTEMPT_LOCK = """
select pg_advisory_xact_lock(onecommit.lock_class('onecommit.completion'), onecommit.attempt_key(%s, %s))
"""
UNIQUE_ROW = "select from onecommit.unique_key for update"
PROGRESS_ROW = "select from onecommit.progress for update"


@pytest.fixture
def attempt(store: Store) -> Attempt:
    """An open attempt of a job with a unique key and progress, so that it takes every kind of lock."""
    worker = store.engine()
    [attempt] = worker.take(1, unique={"key": "ab"})
    worker.set_progress([attempt], {"done": 1})
    return attempt


ORDER = [
    "onecommit.store_metadata (advisory)",
    "onecommit.completion (advisory)",
    "onecommit.completion",
    "onecommit.unique_key",
    "onecommit.progress",
]
# Who holds the next lock, and how many of ORDER complete_job has reached when it has to wait for it.
STEPS = {
    "schema": (lambda e, _: e.sql(SCHEMA_LOCK), 0),
    "attempt": (lambda e, a: e.sql(ATTEMPT_LOCK, a.job_id, a.run_lease), 1),
    "completion key": (lambda e, a: e.complete([a]), 3),
    "unique key": (lambda e, _: e.sql(UNIQUE_ROW), 4),
    "progress": (lambda e, _: e.sql(PROGRESS_ROW), 5),
}


@pytest.mark.parametrize("step", STEPS)
def test_each_lock_is_waited_for_with_exactly_the_earlier_ones_held(
    store: Store, attempt: Attempt, step: str
):
    """Whoever holds the next lock stops complete_job there, and nothing later has been touched."""
    hold, reached = STEPS[step]
    holder, caller = store.engine().begin(), store.engine().begin()
    hold(holder, attempt)
    with store.blocked(caller, caller.complete_job, attempt, by=holder) as answer:
        seen = store.observer.execute(REACHED, (caller.pid,)).fetchone()[0]
        holder.rollback()
    assert answer.result().outcome == "completed"
    assert set(seen) == set(ORDER[:reached])
    caller.commit()


def test_the_locks_end_with_the_transaction(store: Store, attempt: Attempt):
    """Nothing is left behind on a pooled connection."""
    caller = store.engine().begin()
    caller.complete_job(attempt)
    caller.commit()
    assert store.observer.execute(REACHED, (caller.pid,)).fetchone()[0] == []
