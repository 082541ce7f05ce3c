"""Enqueue jobs in bulk, then drain them: rates, WAL, dead tuples and the worker's own cost."""

from __future__ import annotations

import time

from benchmarks.adapters.contract import Adapter
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.draining import drain

COLUMNS = {
    "bulk": "bulk enqueue jobs/s",
    "drain": "drain jobs/s",
    "cpu_us": "worker µs CPU/job",
    "server_us": "server µs CPU/job",
    "grown_mib": "worker MiB grown",
    "wal": "WAL bytes/job",
    "dead_made": "dead tuples made/job",
    "dead_left": "dead tuples left/job",
}
RATE = "drain"


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Take one batch of no-op jobs from enqueue to durable completion."""
    async with bench.database(adapter) as database:
        await database.settle()
        start, dead_before = await database.wal_position(), await database.dead_tuples()
        bulk = await _fill(adapter, database.dsn, bench.jobs)
        await database.execute("analyze")
        filled = await database.wal_position()
        drained = await drain(adapter, database, jobs=bench.jobs, limit=bench.limit)
        end, dead = await database.wal_position(), await database.dead_tuples()
    measures = {
        "bulk": bulk,
        "drain": drained.rate,
        "cpu_us": 1e6 * drained.worker_cpu / drained.handled,
        "grown_mib": drained.grown_kib / 1024,
        "wal": (filled - start) / bench.jobs + (end - filled) / drained.closed,
        "dead_made": (dead.made - dead_before.made) / drained.closed,
        "dead_left": dead.left / drained.closed,
    }
    if drained.server_cpu is not None:
        measures["server_us"] = 1e6 * drained.server_cpu / drained.closed
    return measures


async def _fill(adapter: Adapter, dsn: str, jobs: int) -> float:
    """Enqueue the jobs in bulk and return the rate."""
    async with adapter.producer(dsn, 1) as producer:
        started = time.monotonic()
        await producer.enqueue_bulk(range(jobs))
        return jobs / (time.monotonic() - started)
