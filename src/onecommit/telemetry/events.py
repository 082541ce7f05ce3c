"""What the runtime says about itself: a closed list of typed events and where they go.

An event carries names, numbers and identifiers of jobs and backends, never arguments, results,
addresses or the text of an exception.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol, TypedDict

logger = logging.getLogger("onecommit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something an operator may want to know."""

    name: ClassVar[str]
    level: ClassVar[int] = logging.INFO


class AttemptNames(TypedDict):
    """The fields by which an event names an attempt."""

    job: int
    kind: str
    attempt: int
    run_lease: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEvent(Event):
    """Something about one attempt."""

    level = logging.WARNING
    job: int
    kind: str
    attempt: int
    run_lease: int


class WorkNames(TypedDict):
    """The fields by which an event names an attempt of Work."""

    work: int
    contract: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEvent(Event):
    """Something about one attempt of Work."""

    work: int
    contract: str
    """Name and version: ``billing.charge/1``."""
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAttemptEnded(WorkEvent):
    """The end of an attempt is recorded."""

    name = "work.ended"
    level = logging.DEBUG
    event: str
    """What the attempt said: succeeded, exception, …"""
    outcome: str
    """completed; replayed; quarantined: it came too late and changed nothing; refused."""
    state: str | None
    """Where the Work stands now."""
    code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSuspended(WorkAttemptEnded):
    """The end of an attempt left Work that waits for an operator."""

    name = "work.suspended"
    level = logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAttemptFailed(WorkEvent):
    """An executor raised, or returned what its contract does not know."""

    name = "work.failed"
    level = logging.WARNING
    failure: str
    """The class of the exception."""
    frames: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAttemptRefused(WorkEvent):
    """An attempt got no permit or no admission, so the provider was not called."""

    name = "work.refused"
    level = logging.WARNING
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkMoved(WorkEvent):
    """A claim found Work whose lease, time or epoch had ended, and decided it."""

    name = "work.moved"
    level = logging.WARNING
    code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCompletionFenced(WorkEvent):
    """The epoch was rotated while the provider was called: what it said could not be recorded."""

    name = "work.completion_fenced"
    level = logging.CRITICAL
    digest: str
    """SHA-256 of the encoded result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    """The worker is registered and claims."""

    name = "worker.started"
    worker: int
    queues: str
    """The queues and their concurrency, as on the command line: ``email:20 billing:5``."""


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
    """A queue does not accept caller-owned completion while workers of an old version serve it."""

    name = "queue.caller_owned_disabled"
    level = logging.WARNING
    queue: str
    waiting_for: str
    """Names of those workers; empty while they are being registered."""


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
class ListenerSilent(Event):
    """A notice sent to ourselves did not come back (a transaction pooler?): the worker polls."""

    name = "listener.silent"
    level = logging.WARNING
    poll_seconds: float


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
class AttemptFailed(AttemptEvent):
    """A handler raised; the attempt is retried or, when none is left, moved to the dead letters."""

    name = "attempt.failed"
    code: str
    failure: str
    frames: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(AttemptEvent):
    """How an attempt ended, after the commit; made only for those who observe it."""

    name = "attempt.ended"
    level = logging.DEBUG
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCompleted(AttemptEnded):
    """The job is completed; of a caller-owned job, the store's evidence says so."""

    name = "attempt.completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRetried(AttemptEnded):
    """The attempt failed and the job is tried again."""

    name = "attempt.retried"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptExhausted(AttemptEnded):
    """The job went to the dead letters."""

    name = "attempt.exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCancelled(AttemptEnded):
    """The handler ended the job as cancelled."""

    name = "attempt.cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRescued(AttemptEnded):
    """The worker of the attempt was lost or its deadline passed; the job is tried again."""

    name = "attempt.rescued"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpFailed(AttemptEvent):
    """No follow-ups were enqueued: their function raised, or the store refused what it gave."""

    name = "attempt.follow_up_failed"
    level = logging.ERROR
    transition: str
    failure: str
    frames: str


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
class StaleAttempt(AttemptEvent):
    """Another outcome closed this attempt first; what this process wanted to record was dropped."""

    name = "attempt.stale"
    wanted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecycledAttempt(AttemptEvent):
    """The history that held this attempt is gone; nothing can be recorded about it any more."""

    name = "attempt.recycled"
    level = logging.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUnrecorded(AttemptEvent):
    """The store refuses what should be recorded about this attempt, which therefore stays open."""

    name = "attempt.unrecorded"
    level = logging.ERROR
    wanted: str
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedThenRaised(AttemptEvent):
    """A caller-owned attempt committed its completion, and its handler then ended another way."""

    name = "attempt.completed_then_raised"
    exit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptWithoutCompletion(AttemptEvent):
    """A caller-owned handler returned its receipt, but its transaction did not commit."""

    name = "attempt.receipt_without_completion"
    level = logging.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReceipt(AttemptEvent):
    """A caller-owned handler returned something that is not the receipt of its own attempt."""

    name = "attempt.no_receipt"
    level = logging.ERROR
    returned: str
    """Class of what it returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOutcome(AttemptEvent):
    """The history that could tell what became of a caller-owned attempt is gone; nothing was touched."""

    name = "attempt.unknown"
    level = logging.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class UnresolvedAttempt(AttemptEvent):
    """The outcome of a caller-owned attempt is not known; a watcher goes on asking, nothing is issued."""

    name = "attempt.unresolved"
    level = logging.ERROR
    waited_seconds: float
    holder_pid: int | None
    """The backend whose open transaction holds the attempt, if one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAttempt(AttemptEvent):
    """The watcher of an attempt of unknown outcome has found out what became of it."""

    name = "attempt.resolved"
    level = logging.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedAttempt(AttemptEvent):
    """The worker ends before the outcome of a caller-owned attempt is known; rescue decides it."""

    name = "attempt.abandoned"
    holder_pid: int | None
    """The backend whose open transaction holds the attempt, if one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancellationIgnored(AttemptEvent):
    """A handler was asked to stop and still runs."""

    name = "attempt.cancellation_ignored"
    reason: str
    seconds: float


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


class NamedAttempt(Protocol):
    """An attempt, as far as events are concerned."""

    @property
    def job_id(self) -> int:
        """The job."""

    @property
    def kind(self) -> str:
        """The kind of the job."""

    @property
    def attempt(self) -> int:
        """The number of the attempt."""

    @property
    def run_lease(self) -> int:
        """The attempt's unique number within the job."""


def names_of(attempt: NamedAttempt) -> AttemptNames:
    """The fields by which an event names this attempt."""
    return AttemptNames(
        job=attempt.job_id,
        kind=attempt.kind,
        attempt=attempt.attempt,
        run_lease=attempt.run_lease,
    )


Emit = Callable[[Event], None]


def log_event(event: Event) -> None:
    """Write the event to the ``onecommit`` logger as ``name key=value …``."""
    if logger.isEnabledFor(event.level):
        pairs = [f"{field.name}={getattr(event, field.name)}" for field in fields(event)]
        logger.log(event.level, "%s", " ".join([event.name, *pairs]), extra={"event": event})
