"""A bare loop over pgmq's SQL functions, installed from the SQL that the `pgmq` package ships."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pgmq.install import get_embedded_install_sql

from benchmarks.adapters.contract import Enqueue, Handled, chunks
from benchmarks.adapters.psycopg_client import Connections, connect, open_connections, scalar

_SEND = "select pgmq.send('bench', %s::jsonb)"
_SEND_BATCH = "select count(*) from pgmq.send_batch('bench', %s::jsonb[])"
_READ = "select msg_id, message from pgmq.read_with_poll('bench', 30, 1000, 5, 100)"
_DELETE = "select pgmq.delete('bench', %s::bigint[])"
_CHUNK = 10_000


def _message(number: int) -> str:
    return f'{{"n": {number}}}'


class PgmqProducer:
    """Sends messages with pgmq.send and pgmq.send_batch."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def enqueue_one(self, number: int) -> None:
        async with self._connections.one() as connection:
            await connection.execute(_SEND, (_message(number),))

    async def enqueue_bulk(self, numbers: range) -> None:
        async with self._connections.one() as connection:
            for chunk in chunks(numbers, _CHUNK):
                await connection.execute(_SEND_BATCH, ([_message(number) for number in chunk],))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Enqueue]:
        async with self._connections.one() as connection, connection.transaction():

            async def enqueue(number: int) -> None:
                await connection.execute(_SEND, (_message(number),))

            yield enqueue


class PgmqAdapter:
    """A message queue rather than a job system: visibility timeout, no retry policy, no fence."""

    name = "pgmq"
    distribution = "pgmq"
    wakes = True
    settings = "read_with_poll 1000, await each no-op, delete; SQL through psycopg"

    async def setup(self, dsn: str) -> None:
        async with await connect(dsn) as connection:
            await connection.execute(get_embedded_install_sql().encode(), prepare=False)
            await connection.execute("select pgmq.create('bench')")

    @asynccontextmanager
    async def producer(self, dsn: str, connections: int) -> AsyncIterator[PgmqProducer]:
        async with open_connections(dsn, connections) as opened:
            yield PgmqProducer(opened)

    async def work(self, dsn: str, handled: Handled) -> None:
        async def noop(message: dict[str, Any]) -> None:
            handled(message["n"])

        async with await connect(dsn) as connection:
            while True:
                rows = await (await connection.execute(_READ, binary=True)).fetchall()
                for _, message in rows:
                    await noop(message)
                if rows:
                    await connection.execute(_DELETE, ([msg_id for msg_id, _ in rows],))

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, "select count(*) from pgmq.q_bench")


ADAPTER = PgmqAdapter()
