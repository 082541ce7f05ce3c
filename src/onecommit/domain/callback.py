"""A callback: what an attempt waits for from outside of the store."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from onecommit.domain.identity import JobId, RunLease
from onecommit.domain.job import JobState
from onecommit.domain.queue import checked_name
from onecommit.domain.times import microseconds
from onecommit.errors import InvalidArgument

LONGEST_TIMEOUT = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """Something outside may resolve this, once; `ctx.wait_for_callback` waits for it."""

    id: str
    """Give it to whoever will answer, and to nobody else: who knows it can resolve the callback."""
    job_id: JobId
    run_lease: RunLease
    timeout_at: datetime
    """By the clock of the database."""


class CallbackView(msgspec.Struct, frozen=True, kw_only=True):
    """A callback that is not resolved, without its id: whoever knows that may resolve it."""

    job_id: JobId
    queue: str
    kind: str
    state: JobState
    """Of the job."""
    attempt: int
    name: str | None
    awaited: bool
    """Whether the handler waits for it already."""
    registered_at: datetime
    timeout_at: datetime


class CallbackAnswer(StrEnum):
    """What became of a resolution; all but `accepted` changed nothing."""

    ACCEPTED = "accepted"
    ALREADY_RESOLVED = "already_resolved"
    TIMED_OUT = "timed_out"
    ENDED = "ended"
    """The attempt that registered it is over; of a callback with a name, the whole job."""
    UNKNOWN = "unknown"
    """There is no such callback, or it is forgotten: a week after it was resolved."""


class Resolution(StrEnum):
    """How a callback was resolved."""

    RESUMED = "resumed"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRIED = "retried"
    TIMED_OUT = "timed_out"
    FOREIGN = "foreign"
    """It belongs to no attempt that waits for it: its attempt is over."""


class Resolved(NamedTuple):
    """A callback that need not be waited for any more."""

    callback_id: str
    resolution: Resolution
    payload: str | None


def callback_timeout_us(timeout: timedelta) -> int:
    """The timeout in microseconds, if it is one."""
    whole = microseconds(timeout, field="timeout")
    if not whole or timeout > LONGEST_TIMEOUT:
        raise InvalidArgument(
            f"`timeout` is not more than zero and at most {LONGEST_TIMEOUT.days} days",
            field="timeout",
        )
    return whole


def checked_callback_name(name: str | None) -> str | None:
    """The name, if there is one and it can be one."""
    return None if name is None else checked_name(name, field="name")


def checked_callback_id(callback_id: object) -> str:
    """The id in its usual form, if it can be one."""
    try:
        return str(UUID(str(callback_id)))
    except ValueError:
        raise InvalidArgument("`callback_id` is not a UUID", field="callback_id") from None
