"""Oban for Python; the open-source edition, which inserts and acknowledges row by row."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import oban
from oban import schema
from psycopg_pool import AsyncConnectionPool

from benchmarks.adapters.contract import Enqueue, Handled, chunks
from benchmarks.adapters.psycopg_client import scalar

_CHUNK = 5_000
_LIMIT = 1_000

_handled: list[Handled] = []


@oban.worker(queue="bench")
class Noop:
    """The no-op job; Oban finds it by its import path, so the callback is a module's."""

    async def process(self, job: oban.Job) -> None:
        _handled[0](job.args["n"])


class ObanProducer:
    """Enqueues through an instance without queues."""

    def __init__(self, client: oban.Oban, pool: AsyncConnectionPool[Any]) -> None:
        self._client = client
        self._pool = pool

    async def enqueue_one(self, number: int) -> None:
        await self._client.enqueue(Noop.new({"n": number}))

    async def enqueue_bulk(self, numbers: range) -> None:
        for chunk in chunks(numbers, _CHUNK):
            await self._client.enqueue_many(Noop.new({"n": number}) for number in chunk)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Enqueue]:
        async with self._pool.connection() as connection:

            async def enqueue(number: int) -> None:
                await self._client.enqueue(Noop.new({"n": number}), conn=connection)

            yield enqueue


class ObanAdapter:
    """Finished jobs stay as rows until the pruner deletes them."""

    name = "oban"
    distribution = "oban"
    wakes = True
    settings = "queue limit 1,000, pool of 10, enqueue_many of 5,000"

    async def setup(self, dsn: str) -> None:
        pool = await oban.Oban.create_pool(dsn, min_size=1, max_size=1)
        await schema.install(pool)
        await pool.close()

    @asynccontextmanager
    async def producer(self, dsn: str, connections: int) -> AsyncIterator[ObanProducer]:
        pool = await oban.Oban.create_pool(dsn, min_size=connections, max_size=connections)
        async with pool, oban.Oban(pool=pool) as client:
            await pool.wait()
            yield ObanProducer(client, pool)

    async def work(self, dsn: str, handled: Handled) -> None:
        _handled[:] = [handled]
        pool = await oban.Oban.create_pool(dsn, min_size=4, max_size=10)
        async with pool, oban.Oban(pool=pool, queues={"bench": _LIMIT}):
            await asyncio.Event().wait()

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, "select count(*) from oban_jobs where state <> 'completed'")


ADAPTER = ObanAdapter()
