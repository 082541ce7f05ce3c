"""Rotating the epoch waits for what is in flight and then fences every process of the old one."""

import tomllib
from collections.abc import Callable
from importlib import resources

import psycopg
import pytest

from tests.engine import AUTHORITIES, Attempt, Engine
from tests.races.closers import CLOSERS
from tests.stores import Store

pytestmark = pytest.mark.pg

MANIFEST = resources.files("onecommit") / "sql" / "capabilities.toml"

# A runtime routine is one that a role may call and that takes the epoch. Those of Work return ASDUR108 instead, which
# tests/sql/work shows.
RUNTIME = """
select p.proname, p.proargnames[1:p.pronargs], array(select format_type(t, null) from unnest(p.proargtypes) t)
from pg_proc p where p.pronamespace = 'onecommit'::regnamespace and p.prosecdef and 'p_epoch' = any (p.proargnames)
order by 1
"""
# Arguments that pass the checks before the fence; the others are null.
PLAUSIBLE = {
    "p_queue": "q",
    "p_kinds": ["k"],
    "p_args": ["{}"],
    "p_data": ["{}"],
    "p_name": "w",
    "p_info": "{}",
    "p_worker": 1,
    "p_request": 1,
    "p_limit": 1,
    "p_actor": "a",
    "p_reason": "r",
    "p_job_ids": [1],
    "p_outcomes": ["failed"],
    "p_ttl_us": 1,
    "p_window_us": 1,
}


@pytest.fixture
def rotate(store: Store) -> Callable[[Engine], int]:
    """Rotate to the next epoch; the test's store is one of the new epoch afterwards."""

    def rotate(operator: Engine) -> int:
        operator.call(
            "rotate_epoch",
            p_store_id=operator.call("store_status")[0].store_id,
            p_expected=store.epoch,
            p_candidate=store.epoch + 1,
            p_actor="a",
            p_reason="r",
        )
        store.epoch += 1
        return store.epoch

    return rotate


@pytest.fixture
def open_mutation(store: Store, attempt: Attempt, request: pytest.FixtureRequest) -> Engine:
    """A transaction that has written under the active epoch."""
    engine = store.engine()
    engine.register()
    engine.begin()
    if request.param in CLOSERS:
        CLOSERS[request.param].run(engine, attempt)
    else:
        getattr(engine, request.param)()
    return engine


MUTATIONS = [
    "enqueue",
    "claim",
    "promote",
    "heartbeat",
    "tend",
    "register",
    *(set(CLOSERS) - {"materialize"}),
]


@pytest.mark.parametrize("open_mutation", sorted(MUTATIONS), indirect=True)
def test_rotation_waits_for_open_mutations(store: Store, open_mutation: Engine, rotate):
    """No transaction of the old epoch commits after the new one is active."""
    operator = store.engine()
    with store.blocked(operator, rotate, operator, by=open_mutation):
        assert operator is not None
        open_mutation.commit()
    assert (
        store.observer.execute("select active_epoch from onecommit.store_status()").fetchone()[0]
        == store.epoch
    )


def test_a_mutation_waits_for_an_open_rotation_and_is_then_fenced(store: Store, rotate):
    """The epoch is read after the lock, so it cannot slip through."""
    operator, producer = store.engine().begin(), store.engine()
    operator.sql("select pg_advisory_xact_lock(onecommit.schema_lock_class(), 0)")
    with store.blocked(producer, producer.enqueue, by=operator) as answer:
        rotate(operator)  # not before: the new epoch shows at once
        operator.commit()
    assert answer.exception().sqlstate == "OC004"


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_an_old_snapshot_does_not_see_the_old_epoch(store: Store, rotate, isolation: str):
    """The fence lies outside MVCC."""
    producer = store.engine().begin(isolation)
    producer.sql("select count(*) from onecommit.runtime_epoch_history")
    rotate(store.engine())
    with pytest.raises(psycopg.Error) as refused:
        producer.enqueue()
    assert refused.value.sqlstate == "OC004"
    producer.rollback()


def test_every_runtime_routine_refuses_the_old_epoch(store: Store, rotate):
    """Read from the catalog, so that a routine added later is covered."""
    engine = store.engine()
    of_work = tomllib.loads(MANIFEST.read_text())["work"]
    routines = [r for r in engine.connection.execute(RUNTIME).fetchall() if r[0] not in of_work]
    assert len(routines) >= 15
    old = engine.epoch
    rotate(engine)
    for name, parameters, types in routines:
        values = PLAUSIBLE | {"p_epoch": old}
        arguments = ", ".join(
            f"{parameter} => %({parameter})s::{kind}"
            for parameter, kind in zip(parameters, types, strict=True)
        )
        statement = f"select * from onecommit.{name}({arguments})"
        for epoch in (old, None, 0, store.epoch + 1):
            values["p_epoch"] = epoch
            with pytest.raises(psycopg.Error) as refused:
                engine.connection.execute(statement, {p: values.get(p) for p in parameters})
            assert (name, refused.value.sqlstate) == (name, "OC004")
            assert refused.value.diag.message_hint


@pytest.mark.parametrize("authority", AUTHORITIES)
def test_a_token_of_the_old_epoch_cannot_complete(
    store: Store, attempt: Attempt, rotate, authority: str
):
    """complete_job passes no epoch: the claim's own is compared, which its lease carries too."""
    caller = store.engine()
    caller.under(authority, attempt)
    rotate(caller)
    with pytest.raises(psycopg.Error) as refused:
        caller.complete_job(attempt)
    assert refused.value.sqlstate == "OC004"


def test_work_of_the_old_epoch_is_rescued_in_the_new_one(store: Store, rotate):
    """A worker of the old epoch counts as dead, whatever its heartbeat says; its jobs run again."""
    worker = store.engine()
    [attempt] = worker.take()
    rotate(store.engine())
    successor = store.engine()
    assert successor.rescue().rescued == 1
    successor.promote()
    assert successor.claim().job_ids == [attempt.job_id]


@pytest.mark.parametrize(
    ("expected", "candidate", "sqlstate"), [(-1, 1, "OC004"), (0, 0, "22023"), (0, -5, "22023")]
)
def test_a_wrong_rotation_changes_nothing(
    store: Store, expected: int, candidate: int, sqlstate: str
):
    """Compare and set: a stale expectation or an old candidate is refused."""
    engine = store.engine()
    with pytest.raises(psycopg.Error) as refused:
        engine.call(
            "rotate_epoch",
            p_store_id=engine.call("store_status")[0].store_id,
            p_expected=store.epoch + expected,
            p_candidate=store.epoch + candidate,
            p_actor="a",
            p_reason="r",
        )
    assert refused.value.sqlstate == sqlstate
    assert engine.call("store_status")[0].active_epoch == store.epoch


def test_numbers_lie_above_what_the_tables_hold_after_a_rotation(store: Store, rotate):
    """Sequences that a copy of the tables left behind cannot hand out a used number again."""
    worker = store.engine()
    attempts = worker.take(3)
    sequences = "('job_number'), ('batch_number'), ('worker_number'), (%s)"
    lane = f"lane_{attempts[0].lane}_number"
    worker.sql(
        f"select setval(format('onecommit.%%s', s), 1, false) from (values {sequences}) v (s)", lane
    )
    rotate(worker)
    fresh = store.engine()
    job = fresh.enqueue_one()
    assert job > attempts[-1].job_id
    [again] = fresh.claim().attempts
    assert (again.job_id, again.seq) == (job, attempts[-1].seq + 1)
    assert again.batch_id > attempts[0].batch_id
