"""Awa's external callbacks: a job hands its item over and ends when the provider's answer arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import awa

from benchmarks.adapters.awa_adapter import ADAPTER as JOBS
from benchmarks.adapters.contract import Handled

_WORKERS = 100
_ANSWERERS = 16


@dataclass
class Effect:
    """The arguments of the job."""

    n: int


class AwaAcceptor:
    """Inserts jobs one by one."""

    def __init__(self, client: awa.AsyncClient, scopes: int) -> None:
        self._client = client
        self._scopes = scopes

    async def accept(self, number: int) -> None:
        await self._client.insert(
            Effect(n=number), queue="bench", tags=[f"scope-{number % self._scopes}"]
        )


class AwaWork:
    """Each item: a job, its claim, its registered callback, its wait, the answer. No permit."""

    name = "awa"
    distribution = "awa-pg"
    settings = (
        f"queue storage, {_WORKERS} workers, register_callback and WaitForCallback; "
        f"{_ANSWERERS} tasks of the same process call complete_external"
    )

    async def setup(self, dsn: str) -> None:
        await JOBS.setup(dsn)

    @asynccontextmanager
    async def acceptor(
        self, dsn: str, *, connections: int, scopes: int
    ) -> AsyncIterator[AwaAcceptor]:
        async with awa.AsyncClient(dsn, max_connections=connections) as client:
            yield AwaAcceptor(client, scopes)

    async def work(self, dsn: str, handled: Handled) -> None:
        client = awa.AsyncClient(dsn, max_connections=20)
        called: asyncio.Queue[str] = asyncio.Queue()

        @client.task(Effect, queue="bench")
        async def effect(job: awa.Job[Effect]) -> awa.WaitForCallback:
            token = await job.register_callback(timeout_seconds=3600)
            handled(job.args.n)
            called.put_nowait(token.id)
            return awa.WaitForCallback(token)

        async def answer() -> None:
            while True:
                await client.complete_external(await called.get())

        await client.start(
            [{"name": "bench", "max_workers": _WORKERS, "claim_batch_size": _WORKERS}]
        )
        await asyncio.gather(*(answer() for _ in range(_ANSWERERS)))

    async def open_jobs(self, dsn: str) -> int:
        async with awa.AsyncClient(dsn, max_connections=1) as client:
            stats = [stat for stat in await client.queue_stats() if stat.queue == "bench"]
            return sum(
                stat.scheduled
                + stat.available
                + stat.retryable
                + stat.running
                + stat.waiting_external
                for stat in stats
            )


ADAPTER = AwaWork()
