"""Settle invoices with psycopg2 in a `def` handler, which runs in a thread."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
from psycopg2 import extensions

from onecommit import App, FinalizationReceipt, SyncCallerOwnedJobContext

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

TABLE = """
create table if not exists invoice (
    id bigint generated always as identity primary key,
    cents bigint not null,
    state text not null default 'open'
)
"""


@contextmanager
def connected() -> Iterator[extensions.connection]:
    """A connection that commits at the end of the block, or rolls back, and is closed."""
    with closing(psycopg2.connect(app.settings.dsn)) as opened, opened:
        yield opened


def ask_bank(invoice_id: int) -> str:
    """Stands for a call over the network."""
    time.sleep(0.01)
    return "settled"


@app.caller_owned_job(queue="billing", name="settle_with_psycopg2", max_attempts=10)
def settle(ctx: SyncCallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    """Settle one invoice in the commit that completes its job."""
    state = ask_bank(invoice_id)  # no transaction is open meanwhile
    with connected() as connection, connection.cursor() as cursor:
        cursor.execute("update invoice set state = %s where id = %s", (state, invoice_id))
        return ctx.complete_in_tx(connection)


def create_invoices(amounts: list[int]) -> list[int]:
    """Insert invoices and enqueue the job of each: all of it commits, or nothing."""
    ids = []
    with connected() as connection, connection.cursor() as cursor:
        cursor.execute(TABLE)
        for cents in amounts:
            cursor.execute("insert into invoice (cents) values (%s) returning id", (cents,))
            ids += cursor.fetchone()
        settle.in_tx(connection).enqueue_many({"invoice_id": number} for number in ids)
    return ids


def settled(ids: list[int]) -> int:
    """How many of these invoices are settled."""
    query = "select count(*) from invoice where id = any(%s) and state = 'settled'"
    with connected() as connection, connection.cursor() as cursor:
        cursor.execute(query, (ids,))
        return int(cursor.fetchone()[0])


async def work() -> None:
    """Run the queue empty: the worker awaits, the handlers do not."""
    async with app.worker(queues={"billing": 5}) as worker:
        await worker.drain()


def main() -> None:
    """Make invoices, settle them, check them."""
    ids = create_invoices([1250, 990, 40_000])
    asyncio.run(work())
    assert settled(ids) == len(ids)
    print(f"ok: {len(ids)} invoices settled")


if __name__ == "__main__":
    main()
