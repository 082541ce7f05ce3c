"""A worker incarnation as operators see it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from onecommit.domain.identity import WorkerId
from onecommit.domain.store import SCHEMA_VERSION
from onecommit.domain.work import EXIT_CAPABILITY


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """What a worker says about itself when it registers."""

    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    work: tuple[str, ...] = ()
    """The contracts of Work that it runs, as ``name/version``."""
    capabilities: tuple[str, ...] = ("caller_owned_v1", EXIT_CAPABILITY)
    connections: int | None = None
    """How many it may have open on the server at a time; None behind a pooler, which decides that."""
    schema_version: int = SCHEMA_VERSION
    """Below the store's `writer_min` it is refused."""


SILENT_AFTER = timedelta(seconds=30)
"""A worker that has not been heard of for this long is as good as dead by its default settings."""


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker incarnation that is alive or whose claims are not settled."""

    worker: WorkerId
    name: str
    info: Any
    epoch: int
    started_at: datetime
    heartbeat_at: datetime
    ended_at: datetime | None

    def serves(self, queue: str) -> bool:
        """Whether it said of itself that it claims from this queue."""
        named = self.info.get("queues") if isinstance(self.info, dict) else None
        return isinstance(named, list) and queue in named

    def is_silent(self, now: datetime) -> bool:
        """Whether nothing was heard of it for longer than a living worker is silent."""
        return now - self.heartbeat_at > SILENT_AFTER


class WorkerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker incarnation holds, and whether it leads."""

    worker: WorkerId
    running: int
    """Attempts of jobs, with those that it has claimed and not started."""
    waiting: int
    """Attempts whose handler waits for a callback."""
    work: int
    """Leases of Work."""
    leads: bool
    """Whether it promotes, rescues and tends the ring for all."""
