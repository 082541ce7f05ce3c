"""Everything that can be set about a worker, validated once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from onecommit.app.app import DEFAULT_CONCURRENCY, DEFAULT_WORK_CONCURRENCY
from onecommit.domain.arguments import checked_count, checked_text, is_whole
from onecommit.domain.queue import checked_name
from onecommit.domain.times import checked_seconds
from onecommit.domain.work_identifier import checked_identifier
from onecommit.errors import InvalidArgument

MAX_CONCURRENCY = 10_000
LARGEST_CLAIM = 10_000
"""Jobs that the store hands out at once."""
_PORTS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker process. Durations are seconds."""

    queues: Mapping[str, int]
    """Concurrency of each queue that this worker serves."""
    work: Mapping[str, int] = field(default_factory=dict)
    """Concurrency of each kind of Work that this worker runs, by its contract's name."""
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
    application_connections: int | None = None
    """Size of the pool from which this process's handlers take their transactions; None: not known."""
    shared_pool: int | None = None
    """Server connections of the pooler through which the runtime and the handlers both go, if they do."""
    operation_timeout: float = 15.0
    """Bound of every database operation."""
    waiting_limit: int = 10_000
    """Handlers that wait for a callback without a slot; those beyond keep theirs while they wait."""
    metrics_port: int | None = None
    """Where /metrics, /livez and /readyz are served; 0: any free port; None: nowhere."""
    metrics_host: str = "127.0.0.1"
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
        for name in ("queues", "work"):
            object.__setattr__(self, name, _own(getattr(self, name), field=name))
        if not self.queues and not self.work:
            raise InvalidArgument(
                "`queues` and `work` are empty",
                field="queues",
                remedy="Name one, for example queues={'default': 20}.",
            )
        for queue, concurrency in self.queues.items():
            _check_queue(queue, concurrency)
        for name, concurrency in self.work.items():
            checked_identifier(name, field="work")
            _check_concurrency(concurrency, field="work")
        if self.name != "":
            checked_name(self.name, field="name")
        self._check_numbers()
        _check_address(self.metrics_port, self.metrics_host)
        if self.heartbeat_interval * 3 > self.rescue_window:
            raise InvalidArgument(
                "`heartbeat_interval` is longer than a third of `rescue_window`",
                field="heartbeat_interval",
                remedy="Leave room for a heartbeat that is lost: 5 and 30 seconds, for example.",
            )

    def _check_numbers(self) -> None:
        for name in _COUNTS:
            checked_count(getattr(self, name), field=name)
        for name in _POOLS:
            if getattr(self, name) is not None:
                checked_count(getattr(self, name), field=name)
        for name in _SECONDS:
            checked_seconds(getattr(self, name), field=name)
        if self.largest_claim > LARGEST_CLAIM:
            raise InvalidArgument(
                f"`largest_claim` is above {LARGEST_CLAIM}", field="largest_claim"
            )

    @property
    def concurrency(self) -> int:
        """Jobs and items of Work that run here at the same time."""
        return sum(self.queues.values()) + sum(self.work.values())


_COUNTS = ("threads", "waiting_limit", "largest_claim", "flush_size")
_POOLS = ("application_connections", "shared_pool")
_SECONDS = (
    "drain_budget",
    "cancel_grace",
    "heartbeat_interval",
    "rescue_window",
    "reconcile_budget",
    "poll_interval",
    "silent_poll_interval",
    "operation_timeout",
    "prefetch_horizon",
    "flush_delay",
    "unknown_kind_delay",
    "unknown_kind_patience",
)


def _own(concurrency: object, *, field: str) -> Mapping[str, int]:
    """A copy that nobody changes."""
    if not isinstance(concurrency, Mapping):
        raise InvalidArgument(
            f"`{field}` does not say how many run at a time for each name",
            field=field,
            remedy=f"Write a mapping: {field}={{'default': 20}}.",
        )
    return MappingProxyType(dict(concurrency))


def _check_queue(queue: object, concurrency: object) -> None:
    checked_name(queue, field="queues")
    _check_concurrency(concurrency, field="queues")


def _check_address(port: object, host: object) -> None:
    if port is not None and not (is_whole(port) and port in range(_PORTS)):
        raise InvalidArgument(
            f"`metrics_port` is not a whole number below {_PORTS}", field="metrics_port"
        )
    if not checked_text(host, field="metrics_host"):
        raise InvalidArgument(
            "`metrics_host` is not the name or the address of an interface", field="metrics_host"
        )


def _check_concurrency(concurrency: object, *, field: str) -> None:
    if not is_whole(concurrency) or concurrency not in range(1, MAX_CONCURRENCY + 1):
        raise InvalidArgument(
            f"the concurrency in `{field}` is not a whole number from 1 to {MAX_CONCURRENCY}",
            field=field,
        )


def parse_work(text: str) -> tuple[str, int]:
    """Read a contract's ``name`` or ``name:concurrency``; names may contain colons too."""
    name, _, last = text.rpartition(":")
    if not name or not re.fullmatch(r"\d{1,6}", last):
        name, last = text, str(DEFAULT_WORK_CONCURRENCY)
    concurrency = int(last)
    _check_concurrency(concurrency, field="work")
    return checked_identifier(name, field="work"), concurrency


def parse_queue(text: str) -> tuple[str, int]:
    """Read ``name`` or ``name:concurrency``, as on the command line."""
    match = re.fullmatch(r"(?P<name>.*?)(?::(?P<concurrency>\d{1,6}))?", text, re.DOTALL)
    if match is None:
        raise AssertionError("every text is a name at least")
    name, concurrency = match["name"], int(match["concurrency"] or DEFAULT_CONCURRENCY)
    _check_queue(name, concurrency)
    return name, concurrency
