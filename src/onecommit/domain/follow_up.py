"""Jobs that are enqueued in the transaction that closes another job's attempt."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from onecommit.domain.identity import JobId, RunLease
from onecommit.errors import InvalidArgument


class Transition(StrEnum):
    """What became of a job when one of its attempts ended."""

    COMPLETED = "completed"
    RETRIED = "retried"
    """The attempt failed and the job is tried again."""
    EXHAUSTED = "exhausted"
    """The job went to the dead letters: no attempt was left, or it was discarded."""
    CANCELLED = "cancelled"
    WAITING = "waiting"
    """The handler waits for a callback."""
    RESCUED = "rescued"
    """The worker was lost or the deadline passed, and the job is tried again."""


def checked_transition(transition: Transition | str) -> Transition:
    """The transition, by its value too, or an error that names the field."""
    try:
        return Transition(transition)
    except ValueError:
        raise InvalidArgument(
            f"`transition` is not one of {', '.join(Transition)}", field="transition"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTransition:
    """What a follow-up function is told about the job."""

    transition: Transition
    job_id: JobId
    kind: str
    attempt: int
    """The number of the attempt that ended, from 1; 0 for a job that was cancelled before its first."""
    max_attempts: int
    run_lease: RunLease
    arguments: Mapping[str, Any]
    """As the handler gets them; the plain JSON values if they do not fit the handler."""
    result: Any = None
    """What the handler returned; only of a completed job."""
    code: str | None = None
    """Why the attempt failed, such as ``handler_error`` or ``worker_lost``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A job to enqueue, encoded and checked already. Made by `job.follow_up(...)`."""

    kind: str
    queue: str
    args: str = field(repr=False)
    options: str | None = field(default=None, repr=False)
    definition: object = field(default=None, repr=False, compare=False)
    """The registered kind that it was made from: one of another App would belong to another store."""


FollowUps = FollowUp | Iterable[FollowUp] | None
"""What a follow-up function returns."""
FollowUpFunction = Callable[[JobTransition], FollowUps]
