"""What Work costs between two moments: time, processor time here and there, WAL."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.database import Database
from benchmarks.worker_process import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Counters that only rise; the difference of two is what happened between them."""

    seconds: float
    server: float
    """Processor seconds of all processes of the server."""
    producer: float
    """Processor seconds of this process, which accepts."""
    worker: float
    """Processor seconds of the worker process; none without one."""
    wal: int
    items: int = 0
    """Items that were done between the two moments."""

    @classmethod
    async def now(cls, database: Database, worker: Worker | None = None) -> Costs:
        """Read all counters."""
        return cls(
            wal=await database.wal_position(),
            server=database.server.processor_seconds() or 0.0,
            producer=time.process_time(),
            worker=(worker.processor_seconds() if worker else None) or 0.0,
            seconds=time.monotonic(),
        )

    def since(self, before: Costs, *, items: int) -> Costs:
        """Subtract what was counted before so many items were done."""
        return Costs(
            seconds=self.seconds - before.seconds,
            server=self.server - before.server,
            producer=self.producer - before.producer,
            worker=self.worker - before.worker,
            wal=self.wal - before.wal,
            items=items,
        )

    @property
    def rate(self) -> float:
        """Items a second."""
        return self.items / self.seconds

    @property
    def microseconds(self) -> dict[str, float]:
        """Processor time of server and Python for each item; 0 where it cannot be read."""
        items = max(1, self.items)
        return {
            "server_us": 1e6 * self.server / items,
            "producer_us": 1e6 * self.producer / items,
            "worker_us": 1e6 * self.worker / items,
        }

    @property
    def all_microseconds(self) -> float:
        """Processor time of server and Python together for each item."""
        return sum(self.microseconds.values())
