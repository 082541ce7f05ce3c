"""A worker incarnation as operators see it."""

from dataclasses import dataclass
from datetime import datetime
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
