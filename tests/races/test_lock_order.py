"""One order of locks on every path that ends an attempt, observed step by step.

Application rows, then schema, attempt, callback, completion key or lease, unique keys, progress. Advisory and relation
locks are read from pg_locks. A row's lock is not there: who holds the row stops the path at it, and rows are tried with NOWAIT.
"""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg
import pytest

from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

# Advisory locks by the table whose oid is their class, relation locks where rows are written or locked.
REACHED = r"""
select coalesce(array_agg(distinct case when l.locktype = 'advisory' then l.classid::regclass || ' (advisory)'
                                        else regexp_replace(l.relation::regclass::text, '_\d$', '') end), '{}')
from pg_locks l
where l.pid = %s and l.granted and (l.locktype = 'advisory' or l.locktype = 'relation'
    and l.mode in ('RowShareLock', 'RowExclusiveLock')
    and regexp_replace(l.relation::regclass::text, '_\d$', '') in ('app.invoice', 'onecommit.completion', 'onecommit.lease', 'onecommit.unique_key',
                                       'onecommit.progress', 'onecommit.dependant', 'onecommit.callback'))
"""
SCHEMA_LOCK = "select pg_advisory_xact_lock(onecommit.schema_lock_class(), 0)"
ATTEMPT_LOCK = """
select pg_advisory_xact_lock(onecommit.lock_class('onecommit.completion'), onecommit.attempt_key(%s, %s))
"""
ROW = "select from onecommit.{} for update nowait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One lock of the order."""

    seen: str
    """As what REACHED shows it."""
    hold: Callable[[Engine, Attempt], object] | None = None
    """Takes it first, so that a path stops there; None where nobody else can hold it."""
    rows: str | None = None
    """The table whose one row is locked."""

    @property
    def is_relation(self) -> bool:
        """Its relation lock is granted when the row is waited for."""
        return "advisory" not in self.seen


def _row(table: str) -> Step:
    return Step(seen=f"onecommit.{table}", hold=lambda e, _: e.sql(ROW.format(table)), rows=table)


APPLICATION = Step(seen="app.invoice")
SCHEMA = Step(seen="onecommit.store_metadata (advisory)", hold=lambda e, _: e.sql(SCHEMA_LOCK))
ATTEMPT = Step(
    seen="onecommit.completion (advisory)",
    hold=lambda e, a: e.sql(ATTEMPT_LOCK, a.job_id, a.run_lease),
)
# Not by a completion of its own, which would go on to the dependant.
CLOSE = (
    "insert into onecommit.completion values (onecommit.ring_slot(%s), %s, 'completed', %s, now())"
)
KEY = Step(seen="onecommit.completion", hold=lambda e, a: e.sql(CLOSE, a.chapter, a.lane, a.seq))
LEASE, UNIQUE, PROGRESS = _row("lease"), _row("unique_key"), _row("progress")
DEPENDANT, CALLBACK = _row("dependant"), _row("callback")
# Where the attempt is a lease, its key is taken since it was materialized, and nobody can hold it.
OLD_KEY = Step(seen="onecommit.completion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way to end an attempt."""

    run: Callable[[Engine, Attempt], object]
    order: tuple[Step, ...]
    tries: bool = False
    """It passes an attempt by whose lock is held."""
    leased: bool = False
    ends: str = "closed"
    """What attempt_status says afterwards."""


def complete_job(engine: Engine, attempt: Attempt) -> None:
    engine.sql("insert into app.invoice values (%s)", attempt.job_id)
    assert engine.complete_job(attempt).outcome == "completed"


def complete_jobs(engine: Engine, attempt: Attempt) -> None:
    assert engine.complete([attempt], side=[attempt.job_id]) == ["closed"]


def finish_jobs(engine: Engine, attempt: Attempt) -> None:
    assert engine.finish([attempt], "failed", lock=True) == ["closed"]


def cancel_jobs(engine: Engine, attempt: Attempt) -> None:
    assert engine.cancel(attempt.job_id) == {attempt.job_id: "cancelled"}


def rescue_jobs(engine: Engine, attempt: Attempt) -> None:
    assert engine.rescue().rescued == 1


def _resolve(how: Callable[[Engine, str], str]) -> Callable[[Engine, Attempt], None]:
    def resolve(engine: Engine, attempt: Attempt) -> None:
        engine.sql("insert into app.invoice values (%s)", attempt.job_id)
        callback = engine.value("select callback_id from onecommit.callback")
        assert how(engine, callback) == "accepted"

    return resolve


OUTSIDE = (APPLICATION, SCHEMA, ATTEMPT, CALLBACK)
SIDE = (UNIQUE, PROGRESS, DEPENDANT)
PATHS = {
    "complete_job": Path(
        run=complete_job, order=(APPLICATION, SCHEMA, ATTEMPT, KEY, UNIQUE, PROGRESS, DEPENDANT)
    ),
    "complete_jobs": Path(run=complete_jobs, order=(SCHEMA, KEY, UNIQUE, PROGRESS, DEPENDANT)),
    "finish_jobs": Path(
        run=finish_jobs, order=(SCHEMA, ATTEMPT, KEY, UNIQUE, PROGRESS, DEPENDANT), tries=True
    ),
    "cancel_jobs": Path(run=cancel_jobs, order=(SCHEMA, ATTEMPT, KEY, UNIQUE, PROGRESS, DEPENDANT)),
    "rescue_jobs": Path(
        run=rescue_jobs, order=(SCHEMA, ATTEMPT, KEY, UNIQUE, PROGRESS, DEPENDANT), tries=True
    ),
    "complete_job of a lease": Path(
        run=complete_job,
        order=(APPLICATION, SCHEMA, ATTEMPT, OLD_KEY, LEASE, UNIQUE, PROGRESS, DEPENDANT),
        leased=True,
    ),
    "cancel_jobs of a lease": Path(
        run=cancel_jobs,
        order=(SCHEMA, ATTEMPT, LEASE, OLD_KEY, UNIQUE, PROGRESS, DEPENDANT),
        leased=True,
    ),
    "rescue_jobs of a lease": Path(
        run=rescue_jobs,
        order=(SCHEMA, ATTEMPT, OLD_KEY, LEASE, UNIQUE, PROGRESS, DEPENDANT),
        tries=True,
        leased=True,
    ),
    "resume_external": Path(
        run=_resolve(Engine.resume_external), order=OUTSIDE, leased=True, ends="open"
    ),
    "complete_external": Path(
        run=_resolve(Engine.complete_external), order=(*OUTSIDE, LEASE, OLD_KEY, *SIDE), leased=True
    ),
    "fail_external": Path(
        run=_resolve(Engine.fail_external), order=(*OUTSIDE, LEASE, OLD_KEY, *SIDE), leased=True
    ),
    # Of the last attempt, so that it ends the job.
    "retry_external": Path(
        run=_resolve(Engine.retry_external), order=(*OUTSIDE, LEASE, OLD_KEY, *SIDE), leased=True
    ),
}
STOPS = [
    pytest.param(path, step, id=f"{name}-at-{step.seen.removeprefix('onecommit.')}")
    for name, path in PATHS.items()
    for step in path.order
    if step.hold and not (path.tries and step is ATTEMPT)
]


def open_attempt(store: Store, path: Path) -> Attempt:
    """The last attempt of a job with a unique key, progress and a dependant, of a worker that has ended."""
    worker = store.engine()
    [attempt] = worker.take(1, unique={"key": "ab"}, max_attempts=1)
    worker.set_progress([attempt], {"done": 1})
    worker.enqueue_one(after=attempt.job_id)
    if CALLBACK in path.order:
        worker.callback(attempt)
    elif path.leased:
        assert worker.materialize(attempt)
    worker.retire()
    return attempt


@pytest.mark.parametrize(("path", "step"), STOPS)
def test_each_lock_is_waited_for_with_exactly_the_earlier_ones_held(
    store: Store, path: Path, step: Step
):
    """Whoever holds the next lock stops the path there, and nothing later has been touched."""
    attempt = open_attempt(store, path)
    holder, caller = store.engine().begin(), store.engine().begin()
    step.hold(holder, attempt)
    with store.blocked(caller, path.run, caller, attempt, by=holder) as answer:
        seen = store.observer.execute(REACHED, (caller.pid,)).fetchone()[0]
        locked = rows_locked(store, path, besides=step)
        holder.rollback()
    answer.result()
    before = path.order[: path.order.index(step)]
    assert set(seen) == {s.seen for s in before} | ({step.seen} if step.is_relation else set())
    assert locked == {s.rows for s in before if s.rows}
    caller.commit()
    assert store.engine().status(attempt).state == path.ends


def rows_locked(store: Store, path: Path, *, besides: Step) -> set[str]:
    """The tables whose row somebody has locked, found by trying."""
    prober = store.engine()
    locked = set()
    for table in (step.rows for step in path.order if step.rows and step is not besides):
        try:
            prober.sql(ROW.format(table))
        except psycopg.errors.LockNotAvailable:
            locked.add(table)
    return locked


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=name) for name, path in PATHS.items() if path.tries]
)
def test_the_runtime_passes_by_an_attempt_whose_lock_is_held(store: Store, path: Path):
    """A caller's commit may be in flight: neither retry nor rescue waits for it behind other attempts."""
    attempt = open_attempt(store, path)
    holder, runtime = store.engine().begin(), store.engine().begin()
    ATTEMPT.hold(holder, attempt)
    with pytest.raises(AssertionError):
        path.run(runtime, attempt)
    runtime.commit()
    holder.rollback()
    assert store.engine().status(attempt).state == "open"


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for name, path in PATHS.items()])
def test_the_locks_end_with_the_transaction(store: Store, path: Path):
    """Nothing is left behind on a pooled connection."""
    attempt = open_attempt(store, path)
    caller = store.engine().begin()
    path.run(caller, attempt)
    caller.commit()
    assert store.observer.execute(REACHED, (caller.pid,)).fetchone()[0] == []
