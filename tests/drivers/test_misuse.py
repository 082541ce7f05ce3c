"""A connection that is used wrongly gives an error of its own, and never a half-committed state."""

import asyncio
from contextlib import suppress

import psycopg
import pytest

from onecommit import StaleAttempt
from onecommit.domain.evidence import AttemptState
from onecommit.drivers.transaction import reason_behind
from onecommit.errors import SavepointRefused, UsageError

from tests.drivers.callers import ASYNC_CALLERS, PythonCaller
from tests.drivers.conftest import Application, add_entry, assert_cannot_commit, write
from tests.observe import wait_until_blocked

pytestmark = pytest.mark.pg


async def test_a_closed_connection(python_caller: PythonCaller, application: Application):
    context = await application.claim(sync=not python_caller.is_async)
    entry = await write(python_caller)
    await python_caller.close()
    with pytest.raises(UsageError, match="the connection is closed"):
        await python_caller.complete(context)
    assert await application.is_open(context)
    assert entry not in application.entries()


async def test_completing_twice_says_so_and_takes_the_first_down(python_caller, application):
    context = await application.claim(sync=not python_caller.is_async)
    entry = await write(python_caller)
    await python_caller.complete(context)
    assert context.finalization_error is None
    with pytest.raises(StaleAttempt, match="a second time") as caught:
        await python_caller.complete(context)
    assert "Call it once" in caught.value.remedy
    assert context.finalization_error is caught.value
    await assert_cannot_commit(python_caller)
    assert await application.is_open(context)
    assert entry not in application.entries()


async def test_completing_again_after_a_swallowed_error(python_caller, application):
    """The connection is closed by the first error, so nothing can follow on it."""
    context = await application.claim(sync=not python_caller.is_async)
    entry = await write(python_caller)
    await application.cancel(context)
    with pytest.raises(StaleAttempt):
        await python_caller.complete(context)
    with pytest.raises(UsageError, match="the connection is closed"):
        await python_caller.complete(context)
    await assert_cannot_commit(python_caller)
    assert entry not in application.entries()


async def test_a_transaction_block_ends_with_the_error_that_was_raised_in_it(
    python_caller, application
):
    """Two drivers put an error of their own over it; a worker looks behind that."""
    context = await application.claim(sync=not python_caller.is_async)
    await application.cancel(context)
    entries: list[str] = []

    async def inside() -> None:
        entries.append(await add_entry(python_caller))
        await python_caller.complete(context)

    with pytest.raises(Exception) as caught:  # noqa: PT011  as said
        await python_caller.block(inside)
    assert isinstance(reason_behind(caught.value), StaleAttempt)
    assert not application.entries() & set(entries)


async def test_a_swallowed_refusal_in_a_nested_block_takes_the_outer_one_down(
    python_caller, application
):
    """The trap of every driver: a block inside a block, and an error that somebody caught between."""
    context = await application.claim(sync=not python_caller.is_async)
    entry = ""

    async def finalize() -> None:
        await python_caller.complete(context)

    async def inside() -> None:
        nonlocal entry
        entry = await add_entry(python_caller)
        with suppress(Exception):
            await python_caller.savepoint(finalize)

    with suppress(Exception):
        await python_caller.block(inside)
    assert isinstance(context.finalization_error, SavepointRefused)
    assert await application.is_open(context)
    assert entry not in application.entries()


async def test_a_psycopg_connection_in_pipeline_mode(application):
    """What its transaction is like is not known before the pipeline is synchronized."""
    context = await application.claim(sync=True)
    with (
        psycopg.connect(application.caller_dsn, autocommit=True) as connection,
        suppress(psycopg.OperationalError),  # its blocks find it closed
        connection.transaction(),
        connection.pipeline(),
    ):
        with pytest.raises(UsageError, match="pipeline mode"):
            context.complete_in_tx(connection)
        assert connection.closed
    assert await application.is_open(context)


async def test_a_pipeline_that_was_left_is_no_obstacle(application):
    context = await application.claim(sync=True)
    with psycopg.connect(application.caller_dsn) as connection:
        with connection.pipeline():
            connection.execute("insert into ledger values ('pipelined')")
        context.complete_in_tx(connection)
    assert "pipelined" in application.entries()
    assert (await application.status(context)).state is AttemptState.CLOSED


@pytest.mark.parametrize("name", ASYNC_CALLERS)
async def test_a_connection_that_two_tasks_use_at_once(name, application):
    """Refused at once, or run after the other's statement in the same transaction; nothing between."""
    async with ASYNC_CALLERS[name](application.caller_dsn) as caller:
        refused = await complete_while_another_task_waits(caller, application)
    # SQLAlchemy has the second task wait for its turn.
    assert refused is not name.startswith("sqlalchemy")


async def complete_while_another_task_waits(caller, application) -> bool:
    context = await application.claim(sync=False)
    entry = await write(caller)
    pid = application.only_writer()
    with application.database.connect() as observer, application.database.connect() as holder:
        holder.execute("select pg_advisory_lock(1)")
        other = asyncio.create_task(caller.execute("select pg_advisory_xact_lock(1)"))
        await asyncio.to_thread(wait_until_blocked, observer, pid, by=holder.info.backend_pid)
        completion = asyncio.create_task(caller.complete(context))
        await asyncio.wait([completion], timeout=0.2)  # refused by then, or waiting for its turn
        holder.execute("select pg_advisory_unlock(1)")
        results = await asyncio.gather(other, completion, return_exceptions=True)
    refused = isinstance(results[1], BaseException)
    if refused:
        assert isinstance(results[1], UsageError)
        assert "another task" in str(results[1])
        await assert_cannot_commit(caller)
    else:
        await caller.commit()
    assert await application.is_open(context) is refused
    assert (entry in application.entries()) is not refused
    return refused
