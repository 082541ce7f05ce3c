"""What the runtime says about itself: a closed list of typed events; those of whole processes are here.

An event carries names, numbers and identifiers of jobs and backends, never arguments, results,
addresses or the text of an exception.
"""

import logging
from dataclasses import dataclass

from onecommit import errors
from onecommit.telemetry.attempt_events import (
    AbandonedAttempt,
    AttemptCancelled,
    AttemptCompleted,
    AttemptEnded,
    AttemptEvent,
    AttemptExhausted,
    AttemptFailed,
    AttemptNames,
    AttemptRescued,
    AttemptRetried,
    AttemptUnrecorded,
    CancellationIgnored,
    CompletedThenRaised,
    FollowUpFailed,
    NamedAttempt,
    NoReceipt,
    ReceiptWithoutCompletion,
    RecycledAttempt,
    ResolvedAttempt,
    StaleAttempt,
    UnknownOutcome,
    UnresolvedAttempt,
    names_of,
)
from onecommit.telemetry.event import Emit, Event, log_event
from onecommit.telemetry.work_events import (
    WorkAttemptEnded,
    WorkAttemptFailed,
    WorkAttemptRefused,
    WorkCompletionFenced,
    WorkEvent,
    WorkMoved,
    WorkNames,
    WorkSuspended,
)

__all__ = [
    "AbandonedAttempt",
    "AttemptCancelled",
    "AttemptCompleted",
    "AttemptEnded",
    "AttemptEvent",
    "AttemptExhausted",
    "AttemptFailed",
    "AttemptNames",
    "AttemptRescued",
    "AttemptRetried",
    "AttemptUnrecorded",
    "CallerOwnedDisabled",
    "CancellationIgnored",
    "CompletedThenRaised",
    "ConnectionsScarce",
    "Emit",
    "Event",
    "FollowUpFailed",
    "FollowUpsUnknown",
    "HeartbeatStale",
    "ListenerReady",
    "ListenerSilent",
    "ListenerUnavailable",
    "LoopBlocked",
    "LoopFailed",
    "LoopResumed",
    "MetricsServed",
    "NamedAttempt",
    "NoReceipt",
    "ObserverFailed",
    "ObserversBehind",
    "ObserversCaughtUp",
    "ProcessEnded",
    "ProcessesGivenUp",
    "ReceiptWithoutCompletion",
    "Reconnected",
    "Reconnecting",
    "RecycledAttempt",
    "ResolvedAttempt",
    "StaleAttempt",
    "UnknownKind",
    "UnknownOutcome",
    "UnresolvedAttempt",
    "WorkAttemptEnded",
    "WorkAttemptFailed",
    "WorkAttemptRefused",
    "WorkCompletionFenced",
    "WorkEvent",
    "WorkMoved",
    "WorkNames",
    "WorkSuspended",
    "WorkerDraining",
    "WorkerFenced",
    "WorkerIdentityLost",
    "WorkerReplaced",
    "WorkerStarted",
    "WorkerStopped",
    "log_event",
    "names_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    """The worker is registered and claims."""

    name = "worker.started"
    worker: int
    queues: str
    """The queues and their concurrency, as on the command line: ``email:20 billing:5``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsServed(Event):
    """The worker answers /metrics, /livez and /readyz."""

    name = "metrics.served"
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionsScarce(Event):
    """This process may use more connections than the server can give at the moment."""

    name = "worker.connections_scarce"
    level = logging.WARNING
    needed: int
    free: int
    usable: int
    """What the server would give if nobody else were connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerOwnedDisabled(Event):
    """A queue does not accept caller-owned completion: old workers serve it, or an operator disabled it."""

    name = "queue.caller_owned_disabled"
    level = logging.WARNING
    queue: str
    waiting_for: str
    """Names of the old workers; empty while they are being registered."""
    by_operator: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDraining(Event):
    """The worker claims no more and waits for what runs."""

    name = "worker.draining"
    worker: int
    running: int
    released: int
    """Attempts that were claimed but had not started; they are ready again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStopped(Event):
    """The worker has ended."""

    name = "worker.stopped"
    worker: int
    completed: int
    abandoned: int
    """Attempts left to rescue: a thread that cannot be stopped, or a database that did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFenced(Event):
    """The epoch was rotated or the schema changed: this process must not touch the store any more."""

    name = "worker.fenced"
    level = logging.CRITICAL
    worker: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatStale(Event):
    """No heartbeat of this worker arrived for the rescue window; said once until one does.

    Others may take it for dead, and its leases of Work end by themselves.
    """

    name = "heartbeat.stale"
    level = logging.ERROR
    worker: int
    silent_seconds: float
    code: str = errors.HeartbeatStale.code


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerIdentityLost(Event):
    """The store does not know this incarnation any more, or has declared it dead; a new one registers."""

    name = "worker.identity_lost"
    level = logging.WARNING
    worker: int
    code: str = errors.WorkerIdentityLost.code


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReplaced(Event):
    """This incarnation was declared dead and its attempts rescued; it continues as another one."""

    name = "worker.replaced"
    level = logging.WARNING
    worker: int
    successor: int
    cancelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnecting(Event):
    """The database did not answer; the operation is tried again after the pause."""

    name = "database.reconnecting"
    level = logging.WARNING
    operation: str
    failure: str
    """Our own sentence about it; the driver's could hold an address."""
    attempt: int
    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(Event):
    """The database answers again."""

    name = "database.reconnected"
    operation: str
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerReady(Event):
    """A notice sent to ourselves came back: queues wake the worker, polling is only the safety net."""

    name = "listener.ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerUnavailable(Event):
    """The listening connection was lost or could not be opened: the worker polls and tries again."""

    name = "listener.unavailable"
    level = logging.WARNING
    poll_seconds: float
    code: str = errors.ListenerUnavailable.code


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSilent(ListenerUnavailable):
    """A notice sent to ourselves did not come back (a transaction pooler?): the worker polls."""

    name = "listener.silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFailed(Event):
    """A background loop raised; it goes on after the pause."""

    name = "loop.failed"
    level = logging.ERROR
    loop: str
    failure: str
    frames: str
    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBlocked(Event):
    """The event loop has not run for a while: heartbeats stop, so that other workers take over."""

    name = "loop.blocked"
    level = logging.ERROR
    seconds: float
    kind: str | None
    """The job whose handler holds the loop, if one does."""
    frames: str
    """Where it is: file, line and function of the innermost frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResumed(Event):
    """The event loop runs again after it was blocked."""

    name = "loop.resumed"
    level = logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpsUnknown(Event):
    """A job was rescued or cancelled by a process that does not know whether follow-ups belong to it."""

    name = "follow_up.unknown_kind"
    level = logging.WARNING
    kind: str
    transition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverFailed(Event):
    """A function registered with `App.on` raised; the event is not repeated."""

    name = "observer.failed"
    level = logging.ERROR
    observer: str
    event: str
    failure: str
    frames: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserversBehind(Event):
    """Functions registered with `App.on` are too slow: events for them are dropped until they catch up."""

    name = "observer.behind"
    level = logging.WARNING
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserversCaughtUp(Event):
    """They get every event again; said once after `observer.behind`."""

    name = "observer.caught_up"
    level = logging.WARNING
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKind(Event):
    """Jobs of a kind that this worker does not know come out of a queue that it serves; said once."""

    name = "worker.unknown_kind"
    level = logging.ERROR
    kind: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnded(Event):
    """A child process of the supervisor ended by itself and is started again after the pause."""

    name = "process.ended"
    level = logging.ERROR
    index: int
    pid: int
    exit_code: int
    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesGivenUp(Event):
    """Child processes kept ending at once; the supervisor stops."""

    name = "process.given_up"
    level = logging.CRITICAL
    failures: int
