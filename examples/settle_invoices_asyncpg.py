"""Settle invoices with asyncpg: an invoice's row and the completion of its job land in one commit."""

import asyncio
import os
from functools import cache

import asyncpg

from onecommit import App, CallerOwnedJobContext, FinalizationReceipt

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

TABLE = """
create table if not exists invoice (
    id bigint generated always as identity primary key,
    cents bigint not null,
    state text not null default 'open'
)
"""


@cache
def pool() -> asyncpg.Pool:
    """The application's own pool; asyncpg wants it made inside of the event loop."""
    return asyncpg.create_pool(app.settings.dsn, min_size=1, max_size=5)


async def ask_bank(invoice_id: int) -> str:
    """Stands for a call over the network."""
    await asyncio.sleep(0.01)
    return "settled"


@app.caller_owned_job(queue="billing", max_attempts=10)
async def settle(ctx: CallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    """Settle one invoice in the commit that completes its job."""
    state = await ask_bank(invoice_id)  # no transaction is open meanwhile
    async with pool().acquire() as conn, conn.transaction():
        await conn.execute("update invoice set state = $1 where id = $2", state, invoice_id)
        return await ctx.complete_in_tx(conn)


async def create_invoice(cents: int) -> int:
    """Insert an invoice and enqueue its job: both commit, or neither."""
    async with pool().acquire() as conn, conn.transaction():
        number: int = await conn.fetchval(
            "insert into invoice (cents) values ($1) returning id", cents
        )
        await settle.in_tx(conn).enqueue(invoice_id=number)
    return number


async def main() -> None:
    """Make invoices, settle them, check them."""
    async with app, pool():
        await pool().execute(TABLE)
        ids = [await create_invoice(cents) for cents in (1250, 990, 40_000)]
        async with app.worker(queues={"billing": 5}) as worker:
            await worker.drain()
        settled = await pool().fetchval(
            "select count(*) from invoice where id = any($1) and state = 'settled'", ids
        )
        assert settled == len(ids)
    print(f"ok: {settled} invoices settled")


if __name__ == "__main__":
    asyncio.run(main())
