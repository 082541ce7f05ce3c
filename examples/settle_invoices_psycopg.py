"""Settle invoices with psycopg: an invoice's row and the completion of its job land in one commit."""

import asyncio
import os

from psycopg_pool import AsyncConnectionPool

from onecommit import App, CallerOwnedJobContext, FinalizationReceipt, JobState

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()
pool = AsyncConnectionPool(app.settings.dsn, min_size=1, max_size=5, open=False)

TABLE = """
create table if not exists invoice (
    id bigint generated always as identity primary key,
    cents bigint not null,
    state text not null default 'open'
)
"""


async def ask_bank(invoice_id: int) -> str:
    """Stands for a call over the network."""
    await asyncio.sleep(0.01)
    return "settled"


@app.caller_owned_job(queue="billing", max_attempts=10)
async def settle(ctx: CallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    """Settle one invoice in the commit that completes its job."""
    state = await ask_bank(invoice_id)  # no transaction is open meanwhile
    await pool.open()  # does nothing when it is open
    async with pool.connection() as conn, conn.transaction():
        await conn.execute("update invoice set state = %s where id = %s", (state, invoice_id))
        return await ctx.complete_in_tx(conn)


async def create_invoices(amounts: list[int]) -> list[int]:
    """Insert invoices and enqueue the job of each: all of it commits, or nothing."""
    async with pool.connection() as conn, conn.transaction():
        rows = await conn.execute(
            "insert into invoice (cents) select unnest(%s::bigint[]) returning id", (amounts,)
        )
        ids = [number for (number,) in await rows.fetchall()]
        await settle.in_tx(conn).enqueue_many({"invoice_id": number} for number in ids)
    return ids


async def settled(ids: list[int]) -> int:
    """How many of these invoices are settled."""
    async with pool.connection() as conn:
        rows = await conn.execute(
            "select count(*) from invoice where id = any(%s) and state = 'settled'", (ids,)
        )
        (count,) = await rows.fetchone() or (0,)
    return int(count)


async def main() -> None:
    """Make invoices, settle them, check them."""
    async with app, pool:
        async with pool.connection() as conn:
            await conn.execute(TABLE)
        ids = await create_invoices([1250, 990, 40_000])
        async with app.worker(queues={"billing": 5}) as worker:
            await worker.drain()
        assert await settled(ids) == len(ids)
        for job in await app.jobs.list(queue="billing", kind="settle", limit=len(ids)):
            assert job.state is JobState.COMPLETED
    print(f"ok: {len(ids)} invoices settled, {len(ids)} jobs completed")


if __name__ == "__main__":
    asyncio.run(main())
