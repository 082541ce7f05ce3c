"""What to do with a caller-owned attempt after its handler ended: the reconciliation table."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import assert_never

from onecommit.domain.job import Outcome


class AttemptState(StrEnum):
    """What the store holds about one attempt."""

    OPEN = "open"
    IN_FLIGHT = "in_flight"
    """A transaction that is still running holds the attempt's lock."""
    CLOSED = "closed"
    UNKNOWN = "unknown"
    """Claim or chapter are gone, or the deciding transaction cannot be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStatus:
    """The store's answer about one attempt."""

    state: AttemptState
    outcome: Outcome | None = None
    holder_pid: int | None = None
    finished_at: datetime | None = None


class HandlerExit(Enum):
    """How a caller-owned handler ended."""

    OWN_RECEIPT = auto()
    NO_RECEIPT = auto()
    """It returned something else, or the receipt of another attempt."""
    OUTCOME = auto()
    """It returned Snooze, RetryAfter, Discard or Cancel."""
    ERROR = auto()
    CANCELLED = auto()
    TIMEOUT = auto()
    SHUTDOWN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """The attempt is completed: run hooks. `surprising`: the handler ended otherwise, so warn."""

    surprising: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """Nothing is decided: keep the attempt and ask later. `holder_pid` names who holds it, if known."""

    holder_pid: int | None


class Settle(Enum):
    """Close the open attempt, or leave it alone."""

    AS_HANDLED = auto()
    """By the ordinary path of this exit: retry, snooze, discard, cancel, release."""
    AS_PROTOCOL_ERROR = auto()
    """A receipt without its commit: report, then an ordinary retry."""
    AS_PROGRAMMING_ERROR = auto()
    """No receipt: report, then dead letter at once."""
    STALE = auto()
    """Another outcome won: touch nothing."""
    UNKNOWN = auto()
    """Nothing can be known any more: touch nothing, report."""


Action = Accept | AskAgain | Settle


class Evidence(StrEnum):
    """The classes by which decided attempts are counted."""

    COMPLETED = "completed"
    COMPLETED_OTHERWISE = "completed_otherwise"
    """Completed, although the handler did not return its receipt."""
    OPEN = "open"
    PROTOCOL_ERROR = "protocol_error"
    PROGRAMMING_ERROR = "programming_error"
    STALE = "stale"
    UNKNOWN = "unknown"


def evidence_of(action: Accept | Settle) -> Evidence:
    """The class of what decided."""
    match action:
        case Accept(surprising=surprising):
            return Evidence.COMPLETED_OTHERWISE if surprising else Evidence.COMPLETED
        case Settle.AS_HANDLED:
            return Evidence.OPEN
        case Settle.AS_PROTOCOL_ERROR:
            return Evidence.PROTOCOL_ERROR
        case Settle.AS_PROGRAMMING_ERROR:
            return Evidence.PROGRAMMING_ERROR
        case Settle.STALE:
            return Evidence.STALE
        case Settle.UNKNOWN:
            return Evidence.UNKNOWN
        case unreachable:
            assert_never(unreachable)


def reconcile(handler_exit: HandlerExit, status: AttemptStatus | None) -> Action:
    """The action for this exit and this evidence; None: the database could not be asked."""
    if status is None:
        return AskAgain(holder_pid=None)
    match status.state:
        case AttemptState.CLOSED if status.outcome is Outcome.COMPLETED:
            return Accept(surprising=handler_exit is not HandlerExit.OWN_RECEIPT)
        case AttemptState.CLOSED:
            return Settle.STALE
        case AttemptState.IN_FLIGHT:
            return AskAgain(holder_pid=status.holder_pid)
        case AttemptState.UNKNOWN:
            return Settle.UNKNOWN
        case AttemptState.OPEN:
            return _settle_open(handler_exit)
        case unreachable:
            assert_never(unreachable)


def _settle_open(handler_exit: HandlerExit) -> Settle:
    match handler_exit:
        case HandlerExit.OWN_RECEIPT:
            return Settle.AS_PROTOCOL_ERROR
        case HandlerExit.NO_RECEIPT:
            return Settle.AS_PROGRAMMING_ERROR
        case (
            HandlerExit.OUTCOME
            | HandlerExit.ERROR
            | HandlerExit.CANCELLED
            | HandlerExit.TIMEOUT
            | HandlerExit.SHUTDOWN
        ):
            return Settle.AS_HANDLED
        case unreachable:
            assert_never(unreachable)
