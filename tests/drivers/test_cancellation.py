"""A task that is cancelled while it completes leaves no transaction that could still commit."""

import asyncio
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import psycopg
import pytest

from onecommit.calls.call import Paramstyle, render
from onecommit.calls.finalization import complete_job

from tests.drivers.callers import ASYNC_CALLERS, Caller
from tests.drivers.conftest import Application
from tests.observe import PATIENCE_SECONDS, PAUSE_SECONDS, wait_until_blocked

pytestmark = pytest.mark.pg


@pytest.fixture(params=ASYNC_CALLERS.values(), ids=ASYNC_CALLERS.keys())
async def async_caller(request, application: Application) -> AsyncIterator[Caller]:
    async with request.param(application.caller_dsn) as opened:
        yield opened


def finalize_elsewhere(connection: psycopg.Connection, context) -> None:
    """Take the attempt's lock, as a second finalization of the same attempt does."""
    call = complete_job(context.token, progress=None)
    connection.execute(render(call.routine, "onecommit", Paramstyle.FORMAT), call.arguments)


def wait_until_ended(observer: psycopg.Connection, pid: int) -> None:
    """Return when the server has noticed that the connection is closed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    query = "select from pg_stat_activity where pid = %s"
    while observer.execute(query, (pid,)).fetchone() is not None:
        assert time.monotonic() < deadline, f"backend {pid} goes on without its client"
        time.sleep(PAUSE_SECONDS)


async def test_a_cancelled_completion_takes_the_rows_down(async_caller: Caller, application):
    context = await application.claim(sync=False)
    await async_caller.begin()
    entry = uuid4().hex
    await async_caller.execute(f"insert into ledger values ('{entry}')")
    pid = application.only_writer()
    with (
        application.database.connect() as observer,
        psycopg.connect(application.caller_dsn) as holder,
    ):
        finalize_elsewhere(holder, context)
        task = asyncio.create_task(context.complete_in_tx(async_caller.connection))
        await asyncio.to_thread(wait_until_blocked, observer, pid, by=holder.info.backend_pid)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        holder.rollback()
        await asyncio.to_thread(wait_until_ended, observer, pid)
    with pytest.raises(Exception):  # noqa: B017, PT011  each driver has its own error
        await async_caller.commit()
    assert await application.is_open(context)
    assert entry not in application.entries()
