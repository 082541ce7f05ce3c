"""Time from the call that enqueues one job to the start of its handler on an idle worker."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from dataclasses import dataclass

from benchmarks.adapters.contract import Adapter, Producer
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.worker_process import Worker, running_worker

COLUMNS = {
    "p50": "p50 ms",
    "p99": "p99 ms",
    "committed_p50": "p50 ms after commit",
    "committed_p99": "p99 ms after commit",
}
RATE = None
_WARM_UP = 10
_GAP = (0.02, 0.08)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pickup:
    """Milliseconds to the handler, from the enqueue call and from its return."""

    called: float
    committed: float


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Enqueue single jobs with idle gaps between them."""
    if not adapter.wakes:
        return {}
    async with (
        bench.database(adapter) as database,
        adapter.producer(database.dsn, 1) as producer,
        running_worker(adapter, database.dsn) as worker,
    ):
        await _warm_up(producer, worker)
        pickups = [await _one(producer, worker, number) for number in range(bench.pickups)]
    called = [pickup.called for pickup in pickups]
    committed = [pickup.committed for pickup in pickups]
    return {
        "p50": statistics.median(called),
        "p99": _p99(called),
        "committed_p50": statistics.median(committed),
        "committed_p99": _p99(committed),
    }


async def _warm_up(producer: Producer, worker: Worker) -> None:
    for number in range(_WARM_UP):
        await producer.enqueue_one(number)
        await worker.first()


async def _one(producer: Producer, worker: Worker, number: int) -> Pickup:
    await asyncio.sleep(random.uniform(*_GAP))
    called = time.monotonic()
    await producer.enqueue_one(number)
    committed = time.monotonic()
    started = (await worker.first()).at
    return Pickup(called=1000 * (started - called), committed=1000 * (started - committed))


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]
