"""Enqueue jobs one after another, each committed before the next."""

from __future__ import annotations

import time

from benchmarks.adapters.contract import Adapter
from benchmarks.scenarios.bench import Bench, Measures

COLUMNS = {"rate": "jobs/s", "mean_ms": "mean ms"}
RATE = "rate"
_WARM_UP = 50


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Count the jobs that one task enqueues in the window."""
    async with (
        bench.database(adapter) as database,
        adapter.producer(database.dsn, 1) as producer,
    ):
        for number in range(_WARM_UP):
            await producer.enqueue_one(number)
        count, started = 0, time.monotonic()
        while (elapsed := time.monotonic() - started) < bench.seconds:
            await producer.enqueue_one(count)
            count += 1
    return {"rate": count / elapsed, "mean_ms": 1000 * elapsed / count}
