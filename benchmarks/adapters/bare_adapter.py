"""The raw limit: a plain table, one-row inserts, and a loop that claims and closes in batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.adapters.contract import Enqueue, Handled, chunks
from benchmarks.adapters.psycopg_client import Connections, connect, open_connections, scalar

_TABLE = (
    "create table job (id bigint generated always as identity primary key, args jsonb not null)"
)
_INSERT = "insert into job (args) values (%s::jsonb)"
_INSERT_MANY = "insert into job (args) select unnest(%s::jsonb[])"
_CLAIM = "select id, args from job order by id limit 1000 for update skip locked"
_CLOSE = "delete from job where id = any(%s)"
_CHUNK = 10_000
_IDLE_SECONDS = 0.01


def _args(number: int) -> str:
    return f'{{"n": {number}}}'


class BareProducer:
    """Inserts rows without any job system."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def enqueue_one(self, number: int) -> None:
        async with self._connections.one() as connection:
            await connection.execute(_INSERT, (_args(number),))

    async def enqueue_bulk(self, numbers: range) -> None:
        async with self._connections.one() as connection:
            for chunk in chunks(numbers, _CHUNK):
                await connection.execute(_INSERT_MANY, ([_args(number) for number in chunk],))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Enqueue]:
        async with self._connections.one() as connection, connection.transaction():

            async def enqueue(number: int) -> None:
                await connection.execute(_INSERT, (_args(number),))

            yield enqueue


class BareAdapter:
    """Not a job system: no fence, no retry, no wake-up; what PostgreSQL and psycopg allow."""

    name = "bare"
    distribution = "psycopg"
    wakes = False
    settings = "select … for update skip locked limit 1000, await each no-op, delete, commit"

    async def setup(self, dsn: str) -> None:
        async with await connect(dsn) as connection:
            await connection.execute(_TABLE)

    @asynccontextmanager
    async def producer(self, dsn: str, connections: int) -> AsyncIterator[BareProducer]:
        async with open_connections(dsn, connections) as opened:
            yield BareProducer(opened)

    async def work(self, dsn: str, handled: Handled) -> None:
        async def noop(args: dict[str, Any]) -> None:
            handled(args["n"])

        async with await connect(dsn) as connection:
            while True:
                async with connection.transaction():
                    rows = await (await connection.execute(_CLAIM, binary=True)).fetchall()
                    for _, args in rows:
                        await noop(args)
                    if rows:
                        await connection.execute(_CLOSE, ([job_id for job_id, _ in rows],))
                if not rows:
                    await asyncio.sleep(_IDLE_SECONDS)

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, "select count(*) from job")


ADAPTER = BareAdapter()
