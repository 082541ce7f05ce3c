"""After the fence no process of an older package registers; whoever raises it sees every worker that is alive."""

import json
from collections.abc import Iterator

import psycopg
import pytest

from onecommit.domain.store import SCHEMA_VERSION

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

OLD = SCHEMA_VERSION - 1


@pytest.fixture(autouse=True)
def unfenced(store: Store) -> Iterator[None]:
    """The store is shared, and what it accepts is not emptied with its rows."""
    yield
    store.release()
    store.observer.execute("update onecommit.store_metadata set writer_min = 1")


def register(engine: Engine, name: str = "w", **info: object) -> int:
    info = {"queues": ["q"], "capabilities": ["caller_owned_v1"], **info}
    engine.worker = engine.call("register_worker", p_name=name, p_info=json.dumps(info))[0][0]
    return engine.worker


def fence(engine: Engine, writer_min: int | None = SCHEMA_VERSION, *, force: bool = False) -> list:
    [(names,)] = engine.call(
        "fence_writers",
        p_store_id=engine.call("store_status")[0].store_id,
        p_writer_min=writer_min,
        p_force=force,
        p_actor="ada",
        p_reason="upgraded",
    )
    return names


def refused(call, *arguments, **options) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        call(*arguments, **options)
    return caught.value


def audited(engine: Engine) -> list:
    return engine.sql(
        "select subject, actor, reason from onecommit.operator_action where action = 'fence_writers'"
    )


def test_an_older_worker_that_is_alive_prevents_it_and_is_named(engine: Engine, store: Store):
    """Nothing is changed. One that has retired does not count, nor one of an earlier epoch."""
    old = store.engine()
    register(old, "old", schema_version=OLD)
    register(store.engine(), "new", schema_version=SCHEMA_VERSION)
    error = refused(fence, engine)
    assert (error.sqlstate, error.diag.message_primary) == (
        "OC009",
        "workers of an older package are alive: old",
    )
    assert "force" in error.diag.message_hint
    assert engine.call("store_status")[0].writer_min == 1
    assert audited(engine) == []
    old.call("retire_worker", p_worker=old.worker)
    register(old, "earlier", schema_version=OLD)
    engine.sql("update onecommit.worker set epoch = epoch - 1 where worker = %s", old.worker)
    assert fence(engine) == []
    assert engine.call("store_status")[0].writer_min == SCHEMA_VERSION
    assert audited(engine) == [(str(SCHEMA_VERSION), "ada", "upgraded")]


@pytest.mark.parametrize(
    "said", [{}, {"schema_version": OLD}, {"schema_version": "6"}, {"schema_version": -1e30}]
)
def test_afterwards_an_older_worker_is_refused_before_it_is_registered(engine: Engine, said: dict):
    """With the code on which every release ends its process, and what to do."""
    fence(engine)
    error = refused(register, engine, **said)
    assert error.sqlstate == "OC004"
    assert error.diag.message_hint == "Upgrade the onecommit package of this process."
    assert engine.sql("select from onecommit.worker") == []
    register(engine, schema_version=SCHEMA_VERSION)


def test_before_it_an_older_worker_works(engine: Engine):
    """The schema is open to the previous release."""
    register(engine)
    [attempt] = engine.take()
    assert engine.complete_job(attempt).outcome == "completed"


def test_with_force_older_workers_end_and_claim_nothing(engine: Engine, store: Store):
    """They hear that they need not come back; their leadership ends, and the next rescue takes what they have open."""
    old, operator = store.engine(), store.engine()
    register(old, "old")
    assert old.call("lead", p_worker=old.worker, p_ttl_us=10**9)[0][0]
    [attempt] = old.take()
    assert fence(operator, force=True) == ["old"]
    for call in (old.claim, old.heartbeat):
        assert refused(call).sqlstate == "OC004"
    register(engine, schema_version=SCHEMA_VERSION)
    assert engine.call("lead", p_worker=engine.worker, p_ttl_us=10**9)[0][0]
    assert engine.call("rescue_jobs", p_window_us=10**12, p_limit=100)[0].job_ids == [
        attempt.job_id
    ]


def test_it_is_taken_back(engine: Engine):
    """Until a migration has dropped something, the previous release can be needed again."""
    fence(engine)
    fence(engine, 1)
    register(engine)


def test_it_does_not_go_below_what_a_migration_has_broken(engine: Engine):
    """The previous release would meet a store that lacks what it needs."""
    fence(engine)
    with engine.open():
        engine.sql("update onecommit.schema_migration set writer_min = %s where version = 1", OLD)
        fence(engine, OLD)
        assert refused(fence, engine, OLD - 1).sqlstate == "OC009"
        engine.rollback()


@pytest.mark.parametrize("writer_min", [None, 0, SCHEMA_VERSION + 1])
def test_no_package_could_pass_a_fence_above_the_schema(engine: Engine, writer_min: int | None):
    """Or one that is no version."""
    error = refused(fence, engine, writer_min)
    assert error.sqlstate == "22023"
    assert error.diag.message_primary.startswith("writer_min: ")


def test_an_old_snapshot_hides_no_worker_and_no_fence(engine: Engine):
    """Both look in a snapshot of their own, so they refuse every other isolation."""
    for call in (fence, register):
        engine.begin("repeatable read")
        assert refused(call, engine).sqlstate == "OC006"
        engine.rollback()


def test_it_waits_for_a_registration_and_then_sees_it(engine: Engine, store: Store):
    """A worker that was registered at the same moment is not overlooked."""
    old = store.engine().begin()
    register(old, "old")
    with store.blocked(engine, fence, engine, by=old) as answer:
        old.commit()
    assert "old" in answer.exception().diag.message_primary


def test_a_registration_that_waits_for_it_is_refused(engine: Engine, store: Store):
    """What the package may do is read after the lock."""
    operator = store.engine().begin()
    fence(operator)
    with store.blocked(engine, register, engine, by=operator) as answer:
        operator.commit()
    assert answer.exception().sqlstate == "OC004"
