"""Sixteen producers that roll back every fourth transaction, beside a writer that stays open."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator

from benchmarks.adapters.contract import Adapter, Producer
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.waiting import wait_until
from benchmarks.worker_process import Worker, running_worker

COLUMNS = {
    "committed": "committed jobs/s",
    "handled": "handled jobs/s while the writer is open",
    "lost": "lost",
    "twice": "handled twice",
}
RATE = "handled"
_PRODUCERS = 16
_GRACE = 2.0


class _RollBackError(Exception):
    pass


class _Ledger:
    """Which jobs were committed and which were handled."""

    def __init__(self) -> None:
        self.committed: set[int] = set()
        self.handled: list[int] = []

    @property
    def missing(self) -> set[int]:
        return self.committed - set(self.handled)

    async def is_complete(self) -> bool:
        return not self.missing


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Produce for the window, end the long writer, and wait until every committed job ran."""
    ledger = _Ledger()
    async with (
        bench.database(adapter) as database,
        adapter.producer(database.dsn, _PRODUCERS + 1) as producer,
        running_worker(adapter, database.dsn) as worker,
    ):
        numbers = itertools.count()
        await _warm_up(producer, worker, next(numbers))
        follower = asyncio.create_task(_follow(worker, ledger))
        try:
            open_seconds, committed, handled = await _beside_a_writer(
                producer, ledger, numbers, bench.seconds
            )
            await wait_until(ledger.is_complete, deadline=time.monotonic() + bench.limit)
        finally:
            follower.cancel()
    return {
        "committed": committed / open_seconds,
        "handled": handled / open_seconds,
        "lost": len(ledger.missing),
        "twice": len(ledger.handled) - len(set(ledger.handled)),
    }


async def _warm_up(producer: Producer, worker: Worker, number: int) -> None:
    await producer.enqueue_one(number)
    await worker.first()


async def _follow(worker: Worker, ledger: _Ledger) -> None:
    while True:
        progress = await worker.next_progress(timeout=1.0)
        if progress is not None:
            ledger.handled.append(progress.number)


async def _beside_a_writer(
    producer: Producer, ledger: _Ledger, numbers: Iterator[int], seconds: float
) -> tuple[float, int, int]:
    """Return how long the writer was open and what was committed and handled meanwhile."""
    async with producer.transaction() as enqueue:
        written = next(numbers)
        await enqueue(written)
        started = time.monotonic()
        tasks = [
            asyncio.create_task(_produce(producer, ledger, numbers, started + seconds))
            for _ in range(_PRODUCERS)
        ]
        await asyncio.wait(tasks, timeout=seconds + _GRACE)
        elapsed = time.monotonic() - started
        committed, handled = len(ledger.committed), len(ledger.handled)
    ledger.committed.add(written)
    await asyncio.gather(*tasks)
    return elapsed, committed, handled


async def _produce(
    producer: Producer, ledger: _Ledger, numbers: Iterator[int], deadline: float
) -> None:
    while time.monotonic() < deadline:
        number = next(numbers)
        try:
            async with producer.transaction() as enqueue:
                await enqueue(number)
                if number % 4 == 0:
                    raise _RollBackError
        except _RollBackError:
            continue
        ledger.committed.add(number)
