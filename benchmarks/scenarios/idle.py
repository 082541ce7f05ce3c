"""Statements a second that an idle worker sends, counted in the server's log."""

from __future__ import annotations

import asyncio

from benchmarks.adapters.contract import Adapter
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.worker_process import running_worker

COLUMNS = {"statements": "statements/s"}
RATE = None
_SETTLE_SECONDS = 3.0
_WINDOW_FACTOR = 5


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Let a worker that has handled one job idle, and count what it sends."""
    if not adapter.wakes:
        return {}
    async with bench.database(adapter) as database:
        await database.log_all_statements()
        async with running_worker(adapter, database.dsn) as worker:
            async with adapter.producer(database.dsn, 1) as producer:
                await producer.enqueue_one(0)
                await worker.first()
            await asyncio.sleep(_SETTLE_SECONDS)
            seconds = _WINDOW_FACTOR * bench.seconds
            position = database.server.log_position()
            await asyncio.sleep(seconds)
            statements = database.server.statements_since(position, database.name)
    return {"statements": statements / seconds}
