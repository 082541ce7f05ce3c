"""Onecommit through its public API; the only one that can complete a job in the caller's commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.adapters.contract import Enqueue, Handled, More
from benchmarks.adapters.psycopg_client import Connections, connect, open_connections, scalar
from onecommit import App, CallerOwnedJobContext, FinalizationReceipt, Job, JobContext, schema

_CONCURRENCY = 1_000
_SETTLEMENTS_PER_SECOND = 6_000
_USUAL_CLAIM = 16
"""As many as a worker with eight slots claims at once; the larger a claim, the dearer its arrays."""
_ASKED = 1_000
"""More invoices than are settled while a provider takes its time."""
_OPEN_JOBS = """
    select (select count(*) from onecommit.ready) - (select count(*) from onecommit.completion)
         + (select count(*) from onecommit.scheduled) + (select count(*) from onecommit.lease)
"""
_SETTLE = "update invoice set settled = true where id = %s"


class OnecommitProducer:
    """Enqueues through the job; in bulk with enqueue_many."""

    def __init__(self, noop: Job[..., Any], callers: Connections) -> None:
        self._noop = noop
        self._callers = callers

    async def enqueue_one(self, number: int) -> None:
        await self._noop.enqueue(n=number)

    async def enqueue_bulk(self, numbers: range) -> None:
        await self._noop.enqueue_many({"n": number} for number in numbers)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Enqueue]:
        async with self._callers.one() as connection, connection.transaction():

            async def enqueue(number: int) -> None:
                await self._noop.in_tx(connection).enqueue(n=number)

            yield enqueue


class OnecommitAdapter:
    """Append-only ring; every completion is fenced by the completion's primary key."""

    name = "onecommit"
    distribution = "onecommit"
    wakes = True
    settings = "concurrency 1,000, everything else by default"

    async def setup(self, dsn: str) -> None:
        await asyncio.to_thread(schema.apply, dsn)
        await asyncio.to_thread(schema.ensure_epoch, dsn, actor="benchmarks", reason="fresh store")

    @asynccontextmanager
    async def producer(self, dsn: str, connections: int) -> AsyncIterator[OnecommitProducer]:
        async with (
            open_connections(dsn, connections) as callers,
            App(dsn, max_connections=connections) as app,
        ):
            yield OnecommitProducer(_register(app, lambda _: None), callers)

    async def work(self, dsn: str, handled: Handled) -> None:
        app = App(dsn)
        _register(app, handled)
        async with app.worker(queues={"bench": _CONCURRENCY}) as worker:
            await worker.run()

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, _OPEN_JOBS)

    async def settle(self, dsn: str, *, connections: int, seconds: float, complete: bool) -> float:
        """Settle invoices on that many connections from one worker, which owns the commit or not."""
        invoices = round(_SETTLEMENTS_PER_SECOND * seconds)
        await _create_invoices(dsn, invoices)
        async with open_connections(dsn, connections) as pool, App(dsn) as app:
            ledger = _Ledger()
            job = (_caller_owned if complete else _worker_owned)(app, pool, ledger)
            await job.enqueue_many({"invoice": number} for number in range(invoices))
            async with app.worker(queues={"bench": connections}):
                await ledger.begun.wait()
                before, started = ledger.settled, time.monotonic()
                await asyncio.sleep(seconds)
                return (ledger.settled - before) / (time.monotonic() - started)

    async def settle_claimed(self, dsn: str, *, connections: int, count: int, more: More) -> float:
        """All handlers wait with their attempts until the last transaction of the measurement has committed."""
        await _create_invoices(dsn, count)
        async with open_connections(dsn, connections) as pool, App(dsn) as app:
            claimed = _Claimed(count)
            await _waiting(app, claimed).enqueue_many({"invoice": n} for n in range(count))
            async with app.worker(queues={"bench": count}, largest_claim=_USUAL_CLAIM):
                await claimed.all.wait()
                started = time.monotonic()
                await claimed.settle(pool, connections, more)
                elapsed = time.monotonic() - started
                if more != "completion":
                    await claimed.settle(pool, connections, "completion")
                claimed.over.set()
                return count / elapsed

    @asynccontextmanager
    async def asking(
        self, dsn: str, *, connections: int, answer: float, held: bool
    ) -> AsyncIterator[None]:
        """The transaction is open while the provider is asked, or begins with its answer."""
        await _create_invoices(dsn, _ASKED)
        async with open_connections(dsn, connections) as pool, App(dsn) as app:
            ledger = _Ledger()
            job = _asking(app, pool, ledger, answer=answer, held=held)
            await job.enqueue_many({"invoice": number} for number in range(_ASKED))
            async with app.worker(queues={"bench": connections}, drain_budget=2 * answer):
                await ledger.begun.wait()
                yield


class _Ledger:
    """How many settling transactions have committed."""

    def __init__(self) -> None:
        self.settled = 0
        self.begun = asyncio.Event()

    def note(self) -> None:
        self.settled += 1
        self.begun.set()


class _Claimed:
    """Attempts that wait in their handlers, and the receipts of those that were completed meanwhile."""

    def __init__(self, count: int) -> None:
        self.invoices: dict[CallerOwnedJobContext, int] = {}
        self.receipts: dict[CallerOwnedJobContext, FinalizationReceipt] = {}
        self.all = asyncio.Event()
        self.over = asyncio.Event()
        self._count = count

    def add(self, ctx: CallerOwnedJobContext, invoice: int) -> None:
        self.invoices[ctx] = invoice
        if len(self.invoices) == self._count:
            self.all.set()

    async def settle(self, pool: Connections, connections: int, more: More) -> None:
        """The transactions of all, each connection one after another."""
        waiting = iter(self.invoices.items())
        await asyncio.gather(*(self._settle(pool, waiting, more) for _ in range(connections)))

    async def _settle(
        self, pool: Connections, waiting: Iterator[tuple[CallerOwnedJobContext, int]], more: More
    ) -> None:
        async with pool.one() as connection:
            for ctx, invoice in waiting:
                async with connection.transaction():
                    await connection.execute(_SETTLE, (invoice,))
                    if more == "nothing":
                        await connection.execute("select 1")
                    elif more == "completion":
                        self.receipts[ctx] = await ctx.complete_in_tx(connection)


def _register(app: App, handled: Handled) -> Job[..., Any]:
    @app.job(queue="bench")
    async def noop(ctx: JobContext, n: int) -> None:
        handled(n)

    return noop


def _caller_owned(app: App, pool: Connections, ledger: _Ledger) -> Job[..., Any]:
    @app.caller_owned_job(queue="bench")
    async def settle(ctx: CallerOwnedJobContext, invoice: int) -> FinalizationReceipt:
        async with pool.one() as connection:
            async with connection.transaction():
                await connection.execute(_SETTLE, (invoice,))
                receipt = await ctx.complete_in_tx(connection)
            ledger.note()
            return receipt

    return settle


def _waiting(app: App, claimed: _Claimed) -> Job[..., Any]:
    @app.caller_owned_job(queue="bench")
    async def settle(ctx: CallerOwnedJobContext, invoice: int) -> FinalizationReceipt:
        claimed.add(ctx, invoice)
        await claimed.over.wait()
        return claimed.receipts[ctx]

    return settle


def _asking(
    app: App, pool: Connections, ledger: _Ledger, *, answer: float, held: bool
) -> Job[..., Any]:
    @app.caller_owned_job(queue="bench")
    async def settle(ctx: CallerOwnedJobContext, invoice: int) -> FinalizationReceipt:
        if not held:
            await asyncio.sleep(answer)
        async with pool.one() as connection:
            async with connection.transaction():
                await connection.execute(_SETTLE, (invoice,))
                if held:
                    await asyncio.sleep(answer)
                receipt = await ctx.complete_in_tx(connection)
            ledger.note()
            return receipt

    return settle


def _worker_owned(app: App, pool: Connections, ledger: _Ledger) -> Job[..., Any]:
    @app.job(queue="bench")
    async def settle(ctx: JobContext, invoice: int) -> None:
        async with pool.one() as connection:
            async with connection.transaction():
                await connection.execute(_SETTLE, (invoice,))
            ledger.note()

    return settle


async def _create_invoices(dsn: str, count: int) -> None:
    async with await connect(dsn) as connection:
        await connection.execute(
            "create table invoice (id bigint primary key, settled boolean not null)"
        )
        await connection.execute(
            "insert into invoice select number, false from generate_series(0, %s - 1) as number",
            (count,),
        )


ADAPTER = OnecommitAdapter()
