"""Accept Work from several tasks at once, and run it; shared by the scenarios of Work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from benchmarks.adapters.contract import Acceptor, WorkAdapter
from benchmarks.database import Database
from benchmarks.scenarios.bench import Bench
from benchmarks.scenarios.work_costs import Costs
from benchmarks.waiting import wait_until
from benchmarks.worker_process import START_SECONDS, Worker, running_worker

Begin = Callable[[], Awaitable[None]]

_WARM_UP = 10
"""The part of the items, as a divisor, that is done before anything is measured."""
_phases = iter(range(1, 10**9))


def fresh_numbers(count: int) -> range:
    """Return numbers that nothing in this run has accepted."""
    first = next(_phases) * 10_000_000
    return range(first, first + count)


async def accept_all(acceptor: Acceptor, numbers: range, *, producers: int) -> None:
    """Accept the items from so many tasks, each item in a transaction of its own."""
    left = iter(numbers)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(producers):
            tasks.create_task(_accept(acceptor, left))


async def _accept(acceptor: Acceptor, left: Iterator[int]) -> None:
    for number in left:
        await acceptor.accept(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Producers in this process and one worker process beside them."""

    adapter: WorkAdapter
    database: Database
    acceptor: Acceptor
    worker: Worker
    bench: Bench

    async def accept_and_wait(self, count: int, *, handled: int, limit: float) -> int:
        """Accept so many items and return, when the worker has handled all, how many are done; or at the limit."""
        await accept_all(self.acceptor, fresh_numbers(count), producers=self.bench.producers)
        deadline = time.monotonic() + limit
        await self.worker.until(handled, deadline)
        await wait_until(self._is_done, deadline=deadline)
        return count - await self._open()

    async def _is_done(self) -> bool:
        return await self._open() == 0

    async def _open(self) -> int:
        return await self.adapter.open_jobs(self.database.dsn)


async def accept_and_run(
    adapter: WorkAdapter,
    database: Database,
    bench: Bench,
    *,
    scopes: int,
    begin: Begin | None = None,
) -> Costs:
    """Accept items while one worker runs what is accepted; from the first accept to the last end.

    What is not done within the limit after the last accept is cut: it does not count as an item.
    The warm-up is a tenth of them, and an item in each scope at least; `begin` is called after it.
    """
    step = max(1, bench.items // 100)
    warm_up = max(bench.items // _WARM_UP, scopes)
    warm_up += -warm_up % step  # the worker reports whole steps
    total = warm_up + bench.items
    async with (
        adapter.acceptor(database.dsn, connections=bench.producers, scopes=scopes) as acceptor,
        running_worker(adapter, database.dsn, expected=total, step=step) as worker,
    ):
        run = _Run(
            adapter=adapter, database=database, acceptor=acceptor, worker=worker, bench=bench
        )
        patience = START_SECONDS + bench.limit
        if await run.accept_and_wait(warm_up, handled=warm_up, limit=patience) < warm_up:
            raise RuntimeError("The warm-up was not done within the limit; raise --limit.")
        await database.settle()
        if begin:
            await begin()
        before = await Costs.now(database, worker)
        done = await run.accept_and_wait(bench.items, handled=total, limit=bench.limit)
        return (await Costs.now(database, worker)).since(before, items=done)
