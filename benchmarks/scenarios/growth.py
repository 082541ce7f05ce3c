"""Drain rate in front of growing backlogs: does a bigger queue make each job dearer?"""

from __future__ import annotations

import asyncio

from benchmarks.adapters.contract import Adapter
from benchmarks.database import Database
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.draining import drain

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
            drained = await drain(adapter, database, jobs=size, limit=bench.limit)
            measures[f"rate_{position}"] = drained.rate
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
