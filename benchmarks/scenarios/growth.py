"""Drain rate in front of growing backlogs: does a bigger queue make each job dearer?"""

from __future__ import annotations

import asyncio

from benchmarks.adapters.contract import Adapter
from benchmarks.database import Database
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.worker_process import running_worker

COLUMNS = {
    "rate_1": "jobs/s, smallest backlog",
    "rate_2": "jobs/s, middle backlog",
    "rate_3": "jobs/s, largest backlog",
    "share": "largest / smallest",
}
RATE = None
_CHUNK = 50_000


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Fill each backlog in a fresh database and drain it for at most the limit."""
    measures: Measures = {}
    for position, size in enumerate(bench.sizes, 1):
        async with bench.database(adapter) as database:
            if not await _filled(adapter, database, size, bench.limit):
                break
            await database.settle()
            measures[f"rate_{position}"] = await _rate(adapter, database, size, bench.limit)
    if f"rate_{len(bench.sizes)}" in measures:
        measures["share"] = measures[f"rate_{len(bench.sizes)}"] / measures["rate_1"]
    return measures


async def _filled(adapter: Adapter, database: Database, size: int, limit: float) -> bool:
    """Enqueue the backlog; False when that takes more than twice the limit."""
    try:
        async with asyncio.timeout(2 * limit), adapter.producer(database.dsn, 1) as producer:
            for start in range(0, size, _CHUNK):
                await producer.enqueue_bulk(range(start, min(size, start + _CHUNK)))
    except TimeoutError:
        return False
    return True


async def _rate(adapter: Adapter, database: Database, size: int, limit: float) -> float:
    """Return the handlers' rate from the first job to the last, or to the limit."""
    async with running_worker(adapter, database.dsn, expected=size) as worker:
        first = await worker.first()
        last = await worker.until(size, first.at + limit)
    if last is None:
        raise RuntimeError(f"{adapter.name} handled too few of {size} jobs within the limit.")
    return (last.count - first.count) / (last.at - first.at)
