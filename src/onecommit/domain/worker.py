"""A worker incarnation as operators see it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onecommit.domain.identity import WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """What a worker says about itself when it registers."""

    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    capabilities: tuple[str, ...] = ("caller_owned_v1",)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A registered worker."""

    worker: WorkerId
    name: str
    info: Any
    started_at: datetime
    heartbeat_at: datetime
    state: str
