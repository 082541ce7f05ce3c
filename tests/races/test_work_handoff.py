"""A handoff takes its locks in the one order, and keeps them, and nobody decides about the Work meanwhile."""

from typing import Any

import psycopg
import pytest

from onecommit.domain.work import WorkFence

from tests.engine import Engine
from tests.logins import Logins, logins, shared_logins
from tests.logins import plain_store as shared_store
from tests.races.work_locks import answer_after_a_rotation
from tests.stores import Store
from tests.work_requests import admitted, call_as_acceptor, fence_arguments, store_of

pytestmark = pytest.mark.pg

# The store belongs to a role without privileges, so that row-level security holds for its functions too.
__all__ = ["logins", "shared_logins", "shared_store"]


@pytest.fixture(autouse=True)
def acceptor(monkeypatch: pytest.MonkeyPatch, logins: Logins) -> None:
    """Every connection calls the functions as a login that may do nothing else."""
    monkeypatch.setattr(Engine, "acceptor", logins.role("work_acceptor"), raising=False)


ROWS = ("work", "dispatch", "effect_permit")
LOCK = "select from onecommit.{} where work_id = %s for update {}"
EXCLUSIVE_SCOPE = """
select pg_advisory_xact_lock(onecommit.lock_class('onecommit.scope'), onecommit.scope_key('tenant-1'))
"""
EXCLUSIVE_SCHEMA = "select pg_advisory_xact_lock(onecommit.schema_lock_class(), 0)"


@pytest.fixture
def fence(engine: Engine) -> WorkFence:
    """An admitted invocation."""
    return admitted(engine)


def lock(engine: Engine, fence: WorkFence) -> Any:
    """The row that handoff_lock returns."""
    sent = fence_arguments(fence) | {"p_store_id": store_of(engine)}
    return call_as_acceptor(engine, "handoff_lock", **sent)


def check(engine: Engine, fence: WorkFence) -> Any:
    """The row that handoff_check returns."""
    sent = fence_arguments(fence) | {"p_store_id": store_of(engine)}
    return call_as_acceptor(engine, "handoff_check", **sent)


def is_free(store: Store, table: str, fence: WorkFence) -> bool:
    """Whether another transaction could lock the row now."""
    with store.engine().open() as other:
        try:
            other.sql(LOCK.format(table, "nowait"), fence.work_id)
        except psycopg.errors.LockNotAvailable:
            return False
        finally:
            other.rollback()
    return True


@pytest.mark.parametrize("held", ROWS)
def test_rows_are_locked_in_the_one_order(store: Store, fence: WorkFence, held: str):
    """While it waits for one row it holds those before and has not touched those after."""
    holder, caller = store.engine().begin(), store.engine().begin()
    holder.sql(LOCK.format(held, ""), fence.work_id)
    with store.blocked(caller, lock, caller, fence, by=holder) as answer:
        before = ROWS[: ROWS.index(held)]
        assert [is_free(store, table, fence) for table in ROWS if table != held] == [
            table not in before for table in ROWS if table != held
        ]
        holder.rollback()
    assert answer.result().outcome == "held"


@pytest.mark.parametrize("exclusive", [EXCLUSIVE_SCHEMA, EXCLUSIVE_SCOPE])
def test_epoch_and_scope_stand_still_until_the_caller_ends(
    store: Store, fence: WorkFence, exclusive: str
):
    """A rotation or disabling waits for the caller, and the handoff for one that came first, with no row locked."""
    caller, operator = store.engine().begin(), store.engine().begin()
    assert lock(caller, fence).outcome == "held"
    with store.blocked(operator, operator.sql, exclusive, by=caller):
        caller.commit()
    caller.begin()
    with store.blocked(caller, lock, caller, fence, by=operator):
        assert all(is_free(store, table, fence) for table in ROWS)
        operator.commit()


def test_a_handoff_that_waited_for_a_rotation_is_fenced(store: Store, fence: WorkFence):
    """The epoch is read under the schema's lock; the caller's transaction goes on."""
    caller = store.engine().begin()
    answer = answer_after_a_rotation(store, caller, lambda: lock(caller, fence))
    assert answer.code == "ASDUR108"
    caller.sql("insert into app.invoice values (1)")
    caller.commit()
    assert store.observer.execute("select count(*) from app.invoice").fetchone() == (1,)


def test_a_renewal_meanwhile_is_told_to_ask_again(store: Store, fence: WorkFence):
    """It skips the locked row, so one handoff does not stall the leases of others."""
    caller = store.engine().begin()
    lock(caller, fence)
    [row] = store.engine().call(
        "renew_work",
        p_scope_id=fence.scope,
        p_work_ids=[fence.work_id],
        p_attempts=[fence.attempt],
        p_lease_generations=[fence.lease_generation],
        p_scope_generations=[fence.scope_generation],
        p_owner=fence.owner,
    )
    assert row.outcome == "busy"


def test_a_completion_waits_for_the_callers_end(store: Store, fence: WorkFence):
    """So a handoff that was prepared holds at its commit."""
    caller, worker = store.engine().begin(), store.engine()
    lock(caller, fence)
    completion = {"p_event": "ambiguous", "p_code": None, "p_result": None, "p_result_codec": None}
    arguments = fence_arguments(fence) | completion
    with store.blocked(worker, lambda: worker.call("complete_work", **arguments), by=caller):
        assert check(caller, fence).outcome == "held"
        caller.commit()
    assert lock(store.engine(), fence).code == "ASDUR105"


def test_the_second_look_refuses_without_the_first(store: Store, fence: WorkFence):
    """Nothing would hold what it found."""
    caller = store.engine().begin()
    row = check(caller, fence)
    assert (row.outcome, row.code) == ("refused", "ASDUR116")
    lock(caller, fence)
    caller.sql("savepoint ours")
    assert check(caller, fence).outcome == "held"


def test_no_context_is_left_in_the_callers_transaction(store: Store, fence: WorkFence):
    caller = store.engine().begin()
    for call in (lock, check):
        call(caller, fence)
        assert not caller.value("select current_setting('onecommit.scope_id', true)")
