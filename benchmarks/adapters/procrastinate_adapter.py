"""Procrastinate with its psycopg connector; it fetches and finishes jobs one at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import procrastinate

from benchmarks.adapters.contract import Enqueue, Handled, chunks
from benchmarks.adapters.psycopg_client import Connections, open_connections, scalar

_CHUNK = 1_000
_CONCURRENCY = 20
_POOL = 8


def _app(dsn: str, connections: int) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(
        conninfo=dsn, min_size=connections, max_size=connections
    )
    return procrastinate.App(connector=connector)


async def _nothing(n: int) -> None:
    """Stand in for the task where only its name matters."""


class ProcrastinateProducer:
    """Defers the task, in bulk with batch_defer_async."""

    def __init__(self, app: procrastinate.App, callers: Connections) -> None:
        self._callers = callers
        self._task = app.task(_nothing, name="noop", queue="bench")

    async def enqueue_one(self, number: int) -> None:
        await self._task.defer_async(n=number)

    async def enqueue_bulk(self, numbers: range) -> None:
        for chunk in chunks(numbers, _CHUNK):
            await self._task.batch_defer_async(*({"n": number} for number in chunk))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Enqueue]:
        async with self._callers.one() as connection, connection.transaction():

            async def enqueue(number: int) -> None:
                await self._task.configure(connection=connection).defer_async(n=number)

            yield enqueue


class ProcrastinateAdapter:
    """Each job costs a fetch and a finish of its own, each with a trigger that writes an event."""

    name = "procrastinate"
    distribution = "procrastinate"
    wakes = True
    settings = "psycopg pool of 8, concurrency 20, delete_jobs=always, batches of 1,000"

    async def setup(self, dsn: str) -> None:
        async with (app := _app(dsn, 1)).open_async():
            await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def producer(self, dsn: str, connections: int) -> AsyncIterator[ProcrastinateProducer]:
        app = _app(dsn, connections)
        async with open_connections(dsn, connections) as callers, app.open_async():
            yield ProcrastinateProducer(app, callers)

    async def work(self, dsn: str, handled: Handled) -> None:
        async with (app := _app(dsn, _POOL)).open_async():

            @app.task(name="noop", queue="bench")
            async def noop(n: int) -> None:
                handled(n)

            await app.run_worker_async(
                queues=["bench"],
                concurrency=_CONCURRENCY,
                delete_jobs="always",
                install_signal_handlers=False,
            )

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, "select count(*) from procrastinate_jobs")


ADAPTER = ProcrastinateAdapter()
