"""Settle invoices in Node: a worker in Python hands each attempt's token to a program that completes it in its own commit.

It needs `node`, and the package `pg` where Node finds it (`npm install pg`).
"""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import psycopg

from onecommit import App, CallerOwnedJobContext, JobState

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

TABLE = """
create table if not exists node_invoice (
    id bigint generated always as identity primary key,
    state text not null default 'open'
)
"""


class Settler:
    """The program in Node: a line of JSON in, a word out."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls) -> "Settler":
        """Start it with the way to the database."""
        program = Path(__file__).with_name("settle_invoices_node.cjs")
        environment = {**os.environ, "DSN": app.settings.dsn}
        return cls(
            await asyncio.create_subprocess_exec(
                "node", program, stdin=PIPE, stdout=PIPE, env=environment
            )
        )

    async def settle(self, token: tuple[int, ...], invoice_id: int) -> str:
        """Have one invoice settled; the numbers of a token need 64 bits, so they travel as texts."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"token": [str(number) for number in token], "invoice": invoice_id}
        async with self._turn:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            return (await self._process.stdout.readline()).decode().strip()

    async def stop(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


settlers: list[Settler] = []


# A type checker would ask for a receipt, and the receipt stays in Node.
@app.caller_owned_job(queue="billing", name="settle_in_node", max_attempts=10)  # type: ignore[type-var]
async def settle(ctx: CallerOwnedJobContext, invoice_id: int) -> None:
    """Hand the attempt over; the worker asks the store what became of it."""
    answer = await settlers[0].settle(ctx.token.portable, invoice_id)
    if answer != "settled":
        raise RuntimeError(answer)


async def create_invoices(count: int) -> list[int]:
    """Insert invoices and enqueue the job of each: all of it commits, or nothing."""
    async with await psycopg.AsyncConnection.connect(app.settings.dsn) as conn:
        await conn.execute(TABLE)
        rows = await conn.execute(
            "insert into node_invoice select from generate_series(1, %s) returning id", (count,)
        )
        ids = [number for (number,) in await rows.fetchall()]
        await settle.in_tx(conn).enqueue_many({"invoice_id": number} for number in ids)
    return ids


async def settled(ids: list[int]) -> int:
    """How many of these invoices are settled."""
    query = "select count(*) from node_invoice where id = any(%s) and state = 'settled'"
    async with await psycopg.AsyncConnection.connect(app.settings.dsn) as conn:
        (count,) = await (await conn.execute(query, (ids,))).fetchone() or (0,)
    return int(count)


async def main() -> None:
    """Make invoices, have them settled, check them."""
    async with app:
        ids = await create_invoices(3)
        settlers.append(await Settler.start())
        async with app.worker(queues={"billing": 5}) as worker:
            await worker.drain()
        await settlers[0].stop()
        assert await settled(ids) == len(ids)
        for job in await app.jobs.list(queue="billing", kind="settle_in_node", limit=len(ids)):
            assert job.state is JobState.COMPLETED
    print(f"ok: {len(ids)} invoices settled in Node")


if __name__ == "__main__":
    asyncio.run(main())
