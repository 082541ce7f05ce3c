"""Everything that can be set about a worker, validated once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MAX_QUEUE_NAME = 200
MAX_CONCURRENCY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker process. Durations are seconds."""

    queues: Mapping[str, int]
    """Concurrency of each queue that this worker serves."""
    name: str = ""
    """Shown to operators; the host name and process id when empty."""
    threads: int = 64
    """Most threads for ``def`` handlers; beyond the sum of all concurrency none is used."""
    drain_budget: float = 20.0
    """How long running handlers may go on after a stop was asked for."""
    cancel_grace: float = 5.0
    """How long a cancelled handler may clean up before the worker gives it up."""
    heartbeat_interval: float = 5.0
    rescue_window: float = 30.0
    """A worker silent for this long is dead to the others, and silent by itself when its loop is stuck."""
    reconcile_budget: float = 30.0
    """How long a caller-owned attempt of unknown outcome keeps its slot."""
    poll_interval: float = 5.0
    """Safety poll of an idle queue while notices arrive."""
    silent_poll_interval: float = 1.0
    """Longest pause between claims while notices do not arrive."""
    operation_timeout: float = 15.0
    """Bound of every database operation."""
    largest_claim: int = 2_000
    prefetch_horizon: float = 0.05
    """Jobs that end within this time are claimed ahead."""
    flush_size: int = 500
    flush_delay: float = 0.003
    unknown_kind_delay: float = 10.0
    """How long a job of a kind this worker does not know stays out of its sight."""
    unknown_kind_patience: float = 3600.0
    """Age at which such a job is given up to the retry policy, because no worker seems to know it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "queues", MappingProxyType(dict(self.queues)))
        if not self.queues:
            raise ValueError("queues: name at least one queue, for example {'default': 20}")
        for queue, concurrency in self.queues.items():
            _check_queue(queue, concurrency)
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: must be greater than 0")
        if self.heartbeat_interval * 3 > self.rescue_window:
            raise ValueError(
                "heartbeat_interval: must be at most a third of rescue_window, so that one lost "
                "heartbeat does not end a living worker"
            )


_POSITIVE = (
    "threads",
    "drain_budget",
    "cancel_grace",
    "heartbeat_interval",
    "rescue_window",
    "reconcile_budget",
    "poll_interval",
    "silent_poll_interval",
    "operation_timeout",
    "largest_claim",
    "prefetch_horizon",
    "flush_size",
    "flush_delay",
    "unknown_kind_delay",
    "unknown_kind_patience",
)


def _check_queue(queue: object, concurrency: object) -> None:
    if not isinstance(queue, str) or not queue or len(queue) > MAX_QUEUE_NAME or "\0" in queue:
        raise ValueError(
            f"queues: a queue name has 1 to {MAX_QUEUE_NAME} characters, none of them NUL"
        )
    if (
        not isinstance(concurrency, int)
        or isinstance(concurrency, bool)
        or not 1 <= concurrency <= MAX_CONCURRENCY
    ):
        raise ValueError(f"queues: concurrency must be a whole number from 1 to {MAX_CONCURRENCY}")


def parse_queue(text: str) -> tuple[str, int]:
    """Read ``name`` or ``name:concurrency``, as on the command line."""
    match = re.fullmatch(r"(?P<name>.+?)(?::(?P<concurrency>\d{1,6}))?", text, re.DOTALL)
    if match is None:
        raise ValueError("queue: write name or name:concurrency, for example email:20")
    name, concurrency = match["name"], int(match["concurrency"] or 20)
    _check_queue(name, concurrency)
    return name, concurrency
