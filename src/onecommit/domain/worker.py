"""A worker incarnation as operators see it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from onecommit.domain.identity import WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """What a worker says about itself when it registers."""

    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    capabilities: tuple[str, ...] = ("caller_owned_v1",)


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker incarnation that is alive or whose claims are not settled."""

    worker: WorkerId
    name: str
    info: Any
    epoch: int
    started_at: datetime
    heartbeat_at: datetime
    ended_at: datetime | None
