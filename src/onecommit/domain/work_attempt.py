"""What the store answers a worker about Work: what is due, what was claimed, what became of it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

import msgspec

from onecommit.domain.work import Safety, WorkFence


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCandidate:
    """Work that is due, as discovery saw it; it may be gone or another's by the time of the claim."""

    scope: str
    work_id: int
    revision: int
    contract: tuple[str, str]
    """Name and version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWork:
    """One attempt as a claim hands it out. It authorizes no effect: a permit does."""

    fence: WorkFence
    activity_id: UUID
    command_id: str
    contract_name: str
    contract_version: str
    exit_aware: bool
    codec: str
    payload: bytes = field(repr=False)
    safety: Safety
    revision: int
    accepted_at: datetime
    deadline: datetime | None
    claimed_at: datetime
    lease_expires_at: datetime
    lease: timedelta
    renewal: timedelta

    @property
    def label(self) -> str:
        """The contract as events and registrations name it."""
        return f"{self.contract_name}/{self.contract_version}"


class MovedWork(msgspec.Struct, frozen=True, gc=False):
    """Work that a claim found out of time or without a live lease, and decided instead of taking it."""

    work_id: int
    contract: str
    """Name and version, as ``name/version``."""
    attempt: int
    code: str | None
    """Why it stands as it does now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkClaim:
    """What came of the items that one claim asked for."""

    claimed: list[ClaimedWork]
    moved: list[MovedWork]
    lost: int
    """Items that another worker has, or that are not as discovery saw them."""


class RenewalOutcome(StrEnum):
    """What the store did about one lease."""

    RENEWED = "renewed"
    BUSY = "busy"
    """Another transaction holds the row: ask again."""
    STALE = "stale"


class Renewal(msgspec.Struct, frozen=True, gc=False):
    """The answer about one lease."""

    work_id: int
    outcome: RenewalOutcome
    code: str | None
    lease_expires_at: datetime | None
    revision: int | None
    cancellation_requested: bool | None
    at_limit: bool | None
    """The lease cannot be made any longer."""


class Permission(msgspec.Struct, frozen=True, gc=False):
    """The answer to asking for a permit, or for the admission of its invocation."""

    outcome: str
    code: str | None

    @property
    def is_given(self) -> bool:
        """Whether the attempt may go on."""
        return self.outcome in ("granted", "replayed", "admitted")


class CompletionOutcome(StrEnum):
    """What the store did with the end of an attempt."""

    COMPLETED = "completed"
    REPLAYED = "replayed"
    """This very completion was recorded before."""
    QUARANTINED = "quarantined"
    """The attempt was not the current one any more: what it says is kept aside as evidence."""
    REFUSED = "refused"
    SUSPENDED = "suspended"


class WorkCompletion(msgspec.Struct, frozen=True, gc=False):
    """How Work stands after the end of an attempt."""

    outcome: CompletionOutcome
    code: str | None
    state: str | None
    revision: int | None
    eligible_at: datetime | None = None
    """When its next attempt may begin, if it waits for one."""

    @property
    def is_suspended(self) -> bool:
        """Whether it waits for an operator."""
        return self.state is not None and self.state.startswith("suspended_")


class WorkEvent(StrEnum):
    """How an attempt ended, as the store is told."""

    SUCCEEDED = "succeeded"
    RETRY_BEFORE_EFFECT = "retry_before_effect"
    FAILED_TERMINAL = "failed_terminal"
    AMBIGUOUS = "ambiguous"
    EXCEPTION = "exception"
    COMPATIBILITY = "compatibility"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEnd:
    """The end of an attempt: the event, the application's or the worker's code, the encoded result."""

    event: WorkEvent
    code: str | None = None
    result: bytes | None = None
    codec: str | None = None
