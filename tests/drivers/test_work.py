"""Accepting Work and handing an invocation over, in the transaction of every driver's caller."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from onecommit.app.async_handoff import _warn_of_missing_limits
from onecommit.app.sync_handoff import _warn_of_missing_limits as _warn_of_missing_limits_sync
from onecommit.app.work import Work
from onecommit.app.work_invocation import SyncWorkInvocation, WorkInvocation
from onecommit.domain.work import Accepted, Duplicate, Safety, WorkFence
from onecommit.errors import (
    CommandConflict,
    IsolationRefused,
    LeaseLost,
    SavepointRefused,
    StoreMismatch,
    TransactionRequired,
    UsageError,
    WorkEpochFenced,
    WorkRejected,
)

from tests import observe
from tests.drivers.callers import ASYNC_CALLERS, PythonCaller
from tests.drivers.conftest import Application, add_entry, write
from tests.engine import Engine
from tests.work_requests import admitted, claimed, fence_arguments, request

pytestmark = pytest.mark.pg

LATER = "create or replace function onecommit.store_now() returns timestamptz language sql volatile parallel safe as"


@dataclass
class Charge:
    cents: int


@pytest.fixture
def charge(application: Application) -> Work[Charge, str]:
    return application.app.work(
        "billing.charge", version="1", payload=Charge, result=str, safety=Safety.IDEMPOTENT
    )


@pytest.fixture
def engine(application: Application):
    """A connection for what a worker would do."""
    with application.database.connect() as connection:
        yield Engine(connection, epoch=application.store.epoch)


def identities() -> dict[str, str]:
    name = uuid4().hex
    return {"scope": "tenant", "command_id": name, "idempotency_key": name}


async def accept(caller: PythonCaller, work: Work, cents: int = 1, **names: str) -> Any:
    """Accept as the users of the driver do."""
    answer = work.in_tx(caller.connection).accept(Charge(cents), **names)
    return await answer if caller.is_async else answer


def is_stored(engine: Engine, made: Any) -> bool:
    found = engine.value("select count(*) from onecommit.work where work_id = %s", made.work_id)
    return found == 1


async def test_rows_and_acceptance_commit_together(python_caller, application, charge, engine):
    entry, names = await write(python_caller), identities()
    made = await accept(python_caller, charge, **names)
    assert isinstance(made, Accepted)
    assert isinstance(made.activity_id, UUID)
    assert made.accepted_at.utcoffset() is not None
    assert not is_stored(engine, made)
    await python_caller.commit()
    assert is_stored(engine, made)
    assert entry in application.entries()


async def test_neither_is_there_after_a_rollback(python_caller, application, charge, engine):
    entry = await write(python_caller)
    made = await accept(python_caller, charge, **identities())
    await python_caller.rollback()
    assert not is_stored(engine, made)
    assert entry not in application.entries()


async def test_outcomes_leave_the_transaction_usable(python_caller, application, charge):
    """A duplicate, a conflict and a fenced process; then the caller commits."""
    entry, names = await write(python_caller), identities()
    made = await accept(python_caller, charge, **names)
    again = await accept(python_caller, charge, **names)
    assert isinstance(again, Duplicate)
    assert again.work_id == made.work_id
    with pytest.raises(CommandConflict):
        await accept(python_caller, charge, 2, **names)
    stores = application.app._stores
    stores._epoch += 1
    with pytest.raises(WorkEpochFenced):
        await accept(python_caller, charge, **identities())
    stores._epoch -= 1
    stores._settings = replace(stores.settings(), store_id=uuid4())
    with pytest.raises(StoreMismatch):
        await accept(python_caller, charge, **identities())
    after = await add_entry(python_caller)
    await python_caller.commit()
    assert {entry, after} <= application.entries()


async def test_a_connection_without_a_transaction_is_refused_before_sql(
    python_caller, application, charge
):
    """ASDUR101: the acceptance would commit alone."""
    await python_caller.autocommit()
    with pytest.raises(TransactionRequired, match="ASDUR101"):
        await accept(python_caller, charge, **identities())


async def test_inside_a_savepoint_new_work_is_refused_and_a_duplicate_is_told(
    python_caller, application, charge
):
    names = identities()
    await charge.accept(Charge(1), **names)
    entry = await write(python_caller)

    async def repeat() -> None:
        assert isinstance(await accept(python_caller, charge, **names), Duplicate)

    await python_caller.savepoint(repeat)

    async def accept_new() -> None:
        await accept(python_caller, charge, **identities())

    with pytest.raises(SavepointRefused):
        await python_caller.savepoint(accept_new)
    await python_caller.rollback()
    assert entry not in application.entries()


class Port:
    """A runtime that does nothing."""

    schema = "onecommit"

    def __init__(self, store_id: UUID) -> None:
        self.store_id = store_id

    def is_cancelled(self, fence: WorkFence) -> bool:
        return fence.attempt > 1


def invocation_of(application: Application, fence: WorkFence, *, is_async: bool) -> Any:
    kind = WorkInvocation if is_async else SyncWorkInvocation
    return kind(
        fence,
        Port(application.store.store_id),
        activity_id=uuid4(),
        command_id="c1",
        accepted_at=None,
        deadline=None,
    )


@pytest.fixture
def fence(engine: Engine) -> WorkFence:
    """An admitted invocation."""
    return admitted(engine, request(**identities()))


Write = Callable[[], Awaitable[bool]]


async def hand_off(
    caller: PythonCaller, application: Application, fence: WorkFence, callback: Write
) -> bool:
    """Hand over as an executor with this driver does. A sync driver's callback does not wait."""
    invocation = invocation_of(application, fence, is_async=caller.is_async)
    if caller.is_async:
        return await invocation.handoff(caller.connection, lambda _: callback())
    return invocation.handoff(caller.connection, lambda _: finished(callback()))


def finished(awaitable: Any) -> Any:
    """What a coroutine returns that never waits."""
    try:
        awaitable.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waited")


async def test_a_handoff_commits_the_callbacks_row(python_caller, application, fence, engine):
    """With the caller's own; nothing of the protocol is written."""
    before = engine.sql("select * from onecommit.work where work_id = %s", fence.work_id)
    entry, rows = await write(python_caller), []

    async def callback() -> bool:
        rows.append(await add_entry(python_caller))
        return True

    assert await hand_off(python_caller, application, fence, callback) is True
    await python_caller.commit()
    assert {entry, *rows} <= application.entries()
    assert engine.sql("select * from onecommit.work where work_id = %s", fence.work_id) == before


async def test_a_handoff_that_the_caller_rolls_back_hands_nothing_over(
    python_caller, application, fence, engine
):
    """What was prepared is provisional: the ledger says no, and the same invocation may be handed over later."""
    rows: list[str] = []

    async def callback() -> bool:
        rows.append(await add_entry(python_caller))
        return True

    entry = await write(python_caller)
    assert await hand_off(python_caller, application, fence, callback) is True
    await python_caller.rollback()
    assert not {entry, *rows} & application.entries()
    sent = fence_arguments(fence) | {"p_store_id": application.store.store_id}
    assert engine.call("handoff_lock", **sent)[0].outcome == "held"


async def test_a_denial_takes_the_callbacks_row_back_and_nothing_else(
    python_caller, application, fence
):
    entry, rows = await write(python_caller), []

    async def callback() -> bool:
        rows.append(await add_entry(python_caller))
        return False

    assert await hand_off(python_caller, application, fence, callback) is False
    after = await add_entry(python_caller)
    await python_caller.commit()
    assert {entry, after} <= application.entries()
    assert not set(rows) & application.entries()


class ApplicationError(Exception):
    """Of the callback's own."""


BAD_CALLBACKS = {
    "raises": ApplicationError,
    "runs broken SQL": Exception,
    "answers nothing": UsageError,
}


@pytest.mark.parametrize("fault", BAD_CALLBACKS)
async def test_a_bad_callback_takes_its_row_back_and_nothing_else(
    python_caller, application, fence, fault
):
    entry, rows = await write(python_caller), []

    async def callback() -> bool:
        rows.append(await add_entry(python_caller))
        if fault == "raises":
            raise ApplicationError
        if fault == "runs broken SQL":
            await python_caller.execute("select 1 / 0")
        return None  # type: ignore[return-value]  # what forgets its answer

    with pytest.raises(BAD_CALLBACKS[fault]):
        await hand_off(python_caller, application, fence, callback)
    after = await add_entry(python_caller)
    await python_caller.commit()
    assert {entry, after} <= application.entries()
    assert not set(rows) & application.entries()


async def test_a_callback_that_outlives_its_lease_is_taken_back(
    python_caller, application, fence, engine
):
    """The second look has a fresh clock; the locks stay until the caller ends."""
    entry, rows = await write(python_caller), []

    async def callback() -> bool:
        rows.append(await add_entry(python_caller))
        engine.sql(f"{LATER} $$ select clock_timestamp() + interval '1 hour' $$")
        return True

    try:
        with pytest.raises(LeaseLost, match="ASDUR105"):
            await hand_off(python_caller, application, fence, callback)
    finally:
        engine.sql(f"{LATER} $$ select clock_timestamp() $$")
    assert (
        engine.sql(
            "select from onecommit.work where work_id = %s for update skip locked", fence.work_id
        )
        == []
    )
    await python_caller.commit()
    assert entry in application.entries()
    assert not set(rows) & application.entries()


async def never() -> bool:
    raise AssertionError("the callback was called")


async def test_an_invocation_that_does_not_hold_is_refused_before_the_callback(
    python_caller, application, fence, engine
):
    """Of each kind: an old fence, another store, another epoch, no admission, a cancellation; then the caller commits."""
    entry = await write(python_caller)
    unadmitted = claimed(engine, request(**identities()))
    engine.call("acquire_permit", **fence_arguments(unadmitted))
    stopped = admitted(engine, request(**identities()))
    engine.sql(
        "update onecommit.work set cancel_requested_at = now(), revision = revision + 1 where work_id = %s",
        stopped.work_id,
    )
    refusals = [
        (replace(fence, lease_generation=9), LeaseLost),
        (replace(fence, owner=8), LeaseLost),
        (replace(fence, epoch=fence.epoch + 1), WorkEpochFenced),
        (unadmitted, WorkRejected),
        (stopped, WorkRejected),
    ]
    for refused, error in refusals:
        with pytest.raises(error):
            await hand_off(python_caller, application, refused, never)
    application.store._store_id, kept = uuid4(), application.store._store_id
    with pytest.raises(StoreMismatch):
        await hand_off(python_caller, application, fence, never)
    application.store._store_id = kept
    await python_caller.commit()
    assert entry in application.entries()


async def test_inside_a_savepoint_a_handoff_is_refused(python_caller, application, fence):
    """Its rollback would release the proof and keep the caller's belief."""
    entry = await write(python_caller)

    async def inside() -> None:
        await hand_off(python_caller, application, fence, never)

    with pytest.raises(SavepointRefused):
        await python_caller.savepoint(inside)
    await python_caller.rollback()
    assert entry not in application.entries()


async def test_a_handoff_needs_read_committed(python_caller, application, fence):
    await python_caller.begin()
    await python_caller.execute("set transaction isolation level repeatable read")
    entry = await add_entry(python_caller)
    with pytest.raises(IsolationRefused):
        await hand_off(python_caller, application, fence, never)
    with suppress(Exception):  # some drivers tell that the transaction had failed
        await python_caller.commit()
    assert entry not in application.entries()


async def test_a_handoff_needs_a_transaction(python_caller, application, fence):
    await python_caller.autocommit()
    with pytest.raises(TransactionRequired):
        await hand_off(python_caller, application, fence, never)


async def test_a_handoff_without_time_limits_warns_once(python_caller, application, fence, caplog):
    _warn_of_missing_limits.cache_clear()
    _warn_of_missing_limits_sync.cache_clear()
    await python_caller.begin()
    await python_caller.execute("set local lock_timeout = '5s'")

    async def callback() -> bool:
        return True

    with caplog.at_level(logging.WARNING, logger="onecommit"):
        for _ in range(2):
            assert await hand_off(python_caller, application, fence, callback)
    await python_caller.commit()
    [record] = [record for record in caplog.records if "handoff" in record.message]
    assert "set statement_timeout, idle_in_transaction_session_timeout" in record.message


@pytest.mark.parametrize("cancellations", [1, 2])
@pytest.mark.parametrize("name", ASYNC_CALLERS)
async def test_a_cancelled_task_takes_the_callbacks_row_back(
    application, fence, name, cancellations
):
    """While the callback waits for its own reasons, and again while its row is taken back."""
    async with ASYNC_CALLERS[name](application.caller_dsn) as caller:
        entry, rows, waiting = await write(caller), [], asyncio.Event()

        async def callback() -> bool:
            rows.append(await add_entry(caller))
            waiting.set()
            await asyncio.Event().wait()
            return True

        task = asyncio.create_task(hand_off(caller, application, fence, callback))
        await waiting.wait()
        for _ in range(cancellations):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        after = await add_entry(caller)
        await caller.commit()
        assert {entry, after} <= application.entries()
        assert not set(rows) & application.entries()


@pytest.mark.parametrize("name", ASYNC_CALLERS)
async def test_a_task_cancelled_in_a_statement_leaves_nothing_of_the_callback(
    application, fence, name
):
    """Some drivers give the connection up then; whatever can still commit has no row of the callback."""
    async with ASYNC_CALLERS[name](application.caller_dsn) as caller:
        await write(caller)
        rows, pid = [], application.only_writer()

        async def callback() -> bool:
            rows.append(await add_entry(caller))
            await caller.execute("select pg_advisory_xact_lock(1)")
            return True

        with application.database.connect() as other:
            other.execute("select pg_advisory_lock(1)")
            task = asyncio.create_task(hand_off(caller, application, fence, callback))
            with application.database.connect() as observer:
                while not observer.execute(observe.BLOCKED, {"pid": pid, "by": None}).fetchone()[0]:
                    await asyncio.sleep(observe.PAUSE_SECONDS)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        with suppress(Exception):
            await caller.commit()
        assert not set(rows) & application.entries()
