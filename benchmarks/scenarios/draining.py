"""Time one worker process while it empties a queue; shared by the scenarios that drain."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.adapters.contract import System
from benchmarks.database import Database
from benchmarks.waiting import wait_until
from benchmarks.worker_process import running_worker

_PAUSE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """How many jobs were durably closed, in what time, at what cost for the worker process."""

    closed: int
    seconds: float
    worker_cpu: float
    server_cpu: float | None
    handled: int
    grown_kib: int

    @property
    def rate(self) -> float:
        """Jobs a second from the first handler call until the last job is durably closed."""
        return self.closed / self.seconds


async def drain(adapter: System, database: Database, *, jobs: int, limit: float) -> Drain:
    """Run a worker over `jobs` enqueued jobs until none is open, or until the limit."""
    before = await adapter.open_jobs(database.dsn)
    async with running_worker(adapter, database.dsn, expected=jobs) as worker:
        first = await worker.first()
        before_cpu = database.server.processor_seconds()
        deadline = first.at + limit
        last = await worker.until(jobs, deadline) or first

        async def closed() -> bool:
            return await adapter.open_jobs(database.dsn) == 0

        done = await wait_until(closed, deadline=deadline, pause=_PAUSE)
        left = 0 if done else await adapter.open_jobs(database.dsn)
        ended = time.monotonic()
        used = database.server.processor_seconds()
    return Drain(
        closed=before - left,
        seconds=ended - first.at,
        worker_cpu=last.cpu - first.cpu,
        server_cpu=None if used is None or before_cpu is None else used - before_cpu,
        handled=last.count,
        grown_kib=last.peak_kib - first.peak_kib,
    )
