"""A job as producers and operators see it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from onecommit.domain.identity import JobId, RunLease


class JobState(StrEnum):
    """Where a job stands. A retry that waits is `scheduled` with an attempt above 0."""

    BLOCKED = "blocked"
    """It waits for its parent's end."""
    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DEAD = "dead"


UNFINISHED = (
    JobState.BLOCKED,
    JobState.SCHEDULED,
    JobState.READY,
    JobState.RUNNING,
    JobState.WAITING,
)
"""The states of a job that can be cancelled, in the order in which it passes through them."""


class Outcome(StrEnum):
    """How an attempt was closed."""

    COMPLETED = "completed"
    RETRIED = "retried"
    SNOOZED = "snoozed"
    FAILED = "failed"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"
    RESCUED = "rescued"
    MOVED = "moved"
    MATERIALIZED = "materialized"


class JobResult(StrEnum):
    """What an operation did to one job."""

    CANCELLED = "cancelled"
    ALREADY_FINISHED = "already_finished"
    RETRIED = "retried"
    PURGED = "purged"
    KEY_HELD = "key_held"
    """Not retried: another job has taken its unique key."""
    NOT_FOUND = "not_found"
    PREVIEW = "preview"
    """It would have been asked for; nothing was done."""


class OnParentFailure(StrEnum):
    """What becomes of a dependant whose parent does not complete."""

    CANCEL = "cancel"
    """It is cancelled, and its own dependants go by their rules."""
    ENQUEUE = "enqueue"
    """It runs anyway; `ctx.parent` says how the parent ended."""
    DISCARD = "discard"
    """It goes to the dead letters, where an operator may retry it."""


class Parent(msgspec.Struct, frozen=True, kw_only=True):
    """The job that a dependant waited for, and how it ended."""

    job_id: JobId
    outcome: Outcome | None = None
    """None if it ended so long ago that its history was gone when somebody looked."""
    code: str | None = None
    """Why it failed, such as `handler_error`."""

    @property
    def completed(self) -> bool:
        """Whether it did what it was for."""
        return self.outcome is Outcome.COMPLETED


class UniqueKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """The identity of a job that must not be enqueued twice."""

    key: str
    window_us: int | None = None


class JobOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the store is told about one job beside its arguments; None leaves the default."""

    priority: int | None = None
    max_attempts: int | None = None
    run_at: datetime | None = None
    delay_us: int | None = None
    timeout_us: int | None = None
    unique: UniqueKey | None = None
    after: int | None = None
    on_parent_failure: str | None = None
    tags: tuple[str, ...] | None = None
    trace: dict[str, str] | None = None
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that an enqueue call stands for."""

    job_id: JobId
    created: bool = True
    """False if a job with the same unique key exists already; `job_id` then names that job."""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows of one job. A list leaves `args` and `detail` out."""

    job_id: JobId
    state: JobState
    queue: str
    priority: int
    kind: str
    attempt: int
    max_attempts: int
    run_lease: RunLease
    created_at: datetime
    run_at: datetime | None
    finished_at: datetime | None
    outcome: Outcome | None
    code: str | None
    args: Any
    options: Any
    progress: Any
    detail: Any
    parent_id: JobId | None
    """The job that it waits or waited for."""
