"""What the runtime says about attempts of jobs."""

import logging
from dataclasses import dataclass
from typing import Protocol, TypedDict

from onecommit.telemetry.event import Event


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
    """The backend whose open transaction holds the attempt, if one does; 0: a prepared transaction."""


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
    """The backend whose open transaction holds the attempt, if one does; 0: a prepared transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancellationIgnored(AttemptEvent):
    """A handler was asked to stop and still runs."""

    name = "attempt.cancellation_ignored"
    reason: str
    seconds: float


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
