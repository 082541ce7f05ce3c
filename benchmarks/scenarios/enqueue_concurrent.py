"""Enqueue jobs from 32 tasks at once, each waiting for the commit of its job."""

from __future__ import annotations

import asyncio
import time

from benchmarks.adapters.contract import Adapter, Producer
from benchmarks.scenarios.bench import Bench, Measures

COLUMNS = {"rate": "jobs/s"}
RATE = "rate"
TASKS = 32


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Count the jobs that all tasks enqueue in the window."""
    async with (
        bench.database(adapter) as database,
        adapter.producer(database.dsn, TASKS) as producer,
    ):
        await asyncio.gather(*(_produce(producer, time.monotonic()) for _ in range(TASKS)))
        started = time.monotonic()
        deadline = started + bench.seconds
        counts = await asyncio.gather(*(_produce(producer, deadline) for _ in range(TASKS)))
        return {"rate": sum(counts) / (time.monotonic() - started)}


async def _produce(producer: Producer, deadline: float) -> int:
    """Enqueue until the deadline, but at least one job, and return how many."""
    count = 0
    while count == 0 or time.monotonic() < deadline:
        await producer.enqueue_one(count)
        count += 1
    return count
