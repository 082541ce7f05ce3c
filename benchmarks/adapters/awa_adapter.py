"""Awa on its queue-storage engine, with COPY for bulk enqueue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import awa

from benchmarks.adapters.contract import Enqueue, Handled, chunks

_CHUNK = 20_000
_WORKERS = 512


@dataclass
class Noop:
    """The arguments of the no-op job."""

    n: int


class AwaProducer:
    """Enqueues through AsyncClient, in bulk with enqueue_many_copy."""

    def __init__(self, client: awa.AsyncClient) -> None:
        self._client = client

    async def enqueue_one(self, number: int) -> None:
        await self._client.insert(Noop(n=number), queue="bench")

    async def enqueue_bulk(self, numbers: range) -> None:
        for chunk in chunks(numbers, _CHUNK):
            await self._client.enqueue_many_copy([Noop(n=n) for n in chunk], queue="bench")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Enqueue]:
        async with await self._client.transaction() as transaction:

            async def enqueue(number: int) -> None:
                await transaction.insert(Noop(n=number), queue="bench")

            yield enqueue


class AwaAdapter:
    """A Rust engine under Python handlers; append-only storage with a claim ring."""

    name = "awa"
    distribution = "awa-pg"
    wakes = True
    settings = "queue storage, 512 workers, claim_batch_size 512, enqueue_many_copy of 20,000"

    async def setup(self, dsn: str) -> None:
        async with awa.AsyncClient(dsn, max_connections=2) as client:
            await client.migrate()
            await client.install_queue_storage()

    @asynccontextmanager
    async def producer(self, dsn: str, connections: int) -> AsyncIterator[AwaProducer]:
        async with awa.AsyncClient(dsn, max_connections=connections) as client:
            yield AwaProducer(client)

    async def work(self, dsn: str, handled: Handled) -> None:
        client = awa.AsyncClient(dsn, max_connections=20)

        @client.task(Noop, queue="bench")
        async def noop(job: awa.Job[Noop]) -> None:
            handled(job.args.n)

        await client.start(
            [{"name": "bench", "max_workers": _WORKERS, "claim_batch_size": _WORKERS}]
        )
        await asyncio.Event().wait()

    async def open_jobs(self, dsn: str) -> int:
        async with awa.AsyncClient(dsn, max_connections=1) as client:
            stats = [stat for stat in await client.queue_stats() if stat.queue == "bench"]
            return sum(stat.total_queued for stat in stats)


ADAPTER = AwaAdapter()
