"""An application whose ledger shows what really happened: one row for each settlement that committed."""

import asyncio
import os
import random
from datetime import timedelta

from psycopg_pool import AsyncConnectionPool

from onecommit.app.app import App
from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt

app = App()
SOON = Retry(first=timedelta(milliseconds=100), longest=timedelta(seconds=1))
_pools: dict[int, AsyncConnectionPool] = {}


async def pool() -> AsyncConnectionPool:
    """The application's own connections, made on first use."""
    loop = id(asyncio.get_running_loop())
    if loop not in _pools:
        _pools[loop] = AsyncConnectionPool(
            os.environ["HANDLER_DSN"],
            # A frozen process must not keep the attempt that it was about to commit for ever.
            kwargs={"options": "-c idle_in_transaction_session_timeout=1s"},
            min_size=1,
            max_size=8,
            open=False,
            check=AsyncConnectionPool.check_connection,
        )
        await _pools[loop].open()
    return _pools[loop]


@app.caller_owned_job(queue="settle", retry=SOON, max_attempts=100)
async def settle(ctx: CallerOwnedJobContext, n: int) -> FinalizationReceipt:
    await asyncio.sleep(random.random() / 100)
    async with (await pool()).connection() as connection, connection.transaction():
        await connection.execute(
            "insert into ledger (n, job, pid) values (%s, %s, %s)", (n, ctx.job_id, os.getpid())
        )
        return await ctx.complete_in_tx(connection)


@app.job(queue="plain", retry=SOON, max_attempts=100)
async def note(ctx: JobContext, n: int) -> int:
    await asyncio.sleep(random.random() / 100)
    return n


@app.job(queue="stuck")
async def block(ctx: JobContext) -> None:
    async with (await pool()).connection() as connection:
        await connection.execute(
            "insert into ledger (n, job, pid) values (-1, 0, %s)", (os.getpid(),)
        )
    await asyncio.Event().wait()
