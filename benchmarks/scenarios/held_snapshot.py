"""Drain rate while another transaction holds an old snapshot, so that nothing can be vacuumed."""

from __future__ import annotations

from benchmarks.adapters.contract import Adapter
from benchmarks.database import Database
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.draining import drain

COLUMNS = {
    "free": "jobs/s without",
    "held": "jobs/s with a held snapshot",
    "share": "with / without",
}
RATE = None
_ROUNDS = 3


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Compare the last of several rounds of enqueue and drain, without and with the snapshot."""
    async with bench.database(adapter) as database:
        free = await _last_round(adapter, database, bench)
    async with bench.database(adapter) as database, database.held_snapshot():
        held = await _last_round(adapter, database, bench)
    return {"free": free, "held": held, "share": held / free}


async def _last_round(adapter: Adapter, database: Database, bench: Bench) -> float:
    """Enqueue and drain the jobs several times and return the rate of the last drain."""
    rate = 0.0
    for _ in range(_ROUNDS):
        async with adapter.producer(database.dsn, 1) as producer:
            await producer.enqueue_bulk(range(bench.jobs))
        await database.execute("analyze")
        rate = (await drain(adapter, database, jobs=bench.jobs, limit=bench.limit)).rate
    return rate
