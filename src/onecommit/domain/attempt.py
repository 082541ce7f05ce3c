"""One claimed run of a job."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from onecommit.domain.identity import JobId, RunLease
from onecommit.domain.job import Parent
from onecommit.domain.token import FinalizationToken, issue_token

_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


# A Struct, positional and untracked by the collector: a worker builds tens of thousands a second.
class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One run of a job, claimed by this worker: everything that closing it needs."""

    lane: int
    chapter: int
    seq: int
    claim_slot: int
    batch_id: int
    batch_index: int
    receipt_id: int
    job_id: JobId
    run_lease: RunLease
    attempt: int
    """The number of this attempt, from 1."""
    max_attempts: int
    kind: str
    args: str
    options: str | None
    created_us: int
    """Microseconds since 2000, as PostgreSQL counts: a million datetimes would cost half a second."""
    claimed_at: datetime
    deadline: datetime | None
    """When the store may give the job to another worker; None if only the heartbeat decides."""

    @property
    def created_at(self) -> datetime:
        """When the job was enqueued."""
        return _POSTGRES_EPOCH + timedelta(microseconds=self.created_us)

    @property
    def pickup_us(self) -> int:
        """Microseconds from the job's being enqueued to this claim."""
        return (self.claimed_at - _POSTGRES_EPOCH) // _MICROSECOND - self.created_us

    @property
    def token(self) -> FinalizationToken:
        """The authority to complete this attempt, and no other."""
        return issue_token(
            job_id=self.job_id,
            run_lease=self.run_lease,
            claim_slot=self.claim_slot,
            receipt_id=self.receipt_id,
            batch_id=self.batch_id,
            batch_index=self.batch_index,
        )

    @property
    def may_hold_unique_key(self) -> bool:
        """Whether the job was enqueued with a unique key that its end has to release."""
        return self.options is not None and '"unique"' in self.options

    def stored_options(self) -> "StoredOptions":
        """The options that travel with the job."""
        return _NO_OPTIONS if self.options is None else _options.decode(self.options)


class ClaimStatus(StrEnum):
    """What the store advises after a claim."""

    MORE = "more"
    """Claim again at once."""
    EMPTY = "empty"
    PENDING = "pending"
    """Producers have drawn numbers that they have not committed yet: look again soon."""
    BUSY = "busy"
    """Another claimer holds the lane: try again in a few milliseconds."""
    PAUSED = "paused"
    UNKNOWN_QUEUE = "unknown_queue"
    """Nothing was ever enqueued there: the same as empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one claim call returned."""

    status: ClaimStatus
    attempts: list[Attempt]


class StoredOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that travel with the job."""

    timeout_us: int | None = None
    unique: str | None = None
    parent: Parent | None = None
    tags: tuple[str, ...] = ()
    trace: dict[str, str] | None = None
    meta: dict[str, Any] | None = None


_NO_OPTIONS = StoredOptions()
_options = msgspec.json.Decoder(StoredOptions)
