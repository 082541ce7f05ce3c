"""PgQueuer with its asyncpg driver and batches of 1,000."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.adapters.contract import Enqueue, Handled, chunks
from benchmarks.adapters.psycopg_client import scalar

_CHUNK = 10_000
_BATCH = 1_000


def _payload(number: int) -> bytes:
    return f'{{"n": {number}}}'.encode()


class PgQueuerProducer:
    """Enqueues through `Queries`, in bulk with its lists."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._queries = Queries.from_asyncpg_pool(pool)

    async def enqueue_one(self, number: int) -> None:
        await self._queries.enqueue("noop", _payload(number))

    async def enqueue_bulk(self, numbers: range) -> None:
        for chunk in chunks(numbers, _CHUNK):
            size = len(chunk)
            payloads: list[bytes | None] = [_payload(number) for number in chunk]
            await self._queries.enqueue(["noop"] * size, payloads, [0] * size)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Enqueue]:
        async with self._pool.acquire() as connection, connection.transaction():
            queries = Queries.from_asyncpg_connection(connection)

            async def enqueue(number: int) -> None:
                await queries.enqueue("noop", _payload(number))

            yield enqueue


class PgQueuerAdapter:
    """Completion deletes the row and logs it, in batches, without a fence."""

    name = "pgqueuer"
    distribution = "pgqueuer"
    wakes = True
    settings = "asyncpg pool, qm.run(batch_size=1000), optimize_autovacuum, lists of 10,000"

    async def setup(self, dsn: str) -> None:
        connection = await asyncpg.connect(dsn)
        queries = Queries.from_asyncpg_connection(connection)
        await queries.install()
        await queries.optimize_autovacuum()
        await connection.close()

    @asynccontextmanager
    async def producer(self, dsn: str, connections: int) -> AsyncIterator[PgQueuerProducer]:
        async with asyncpg.create_pool(dsn, min_size=connections, max_size=connections) as pool:
            yield PgQueuerProducer(pool)

    async def work(self, dsn: str, handled: Handled) -> None:
        async with asyncpg.create_pool(dsn, min_size=4, max_size=10) as pool:
            queuer = PgQueuer.from_asyncpg_pool(pool)

            @queuer.entrypoint("noop")
            async def noop(job: Job) -> None:
                assert job.payload is not None
                handled(json.loads(job.payload)["n"])

            await queuer.qm.run(
                batch_size=_BATCH
            )  # without the scheduler, which polls every second

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, "select count(*) from pgqueuer")


ADAPTER = PgQueuerAdapter()
