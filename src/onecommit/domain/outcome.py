"""What a handler may return instead of a plain result."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from onecommit.domain.follow_up import FollowUp


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete the job with this JSON result, and enqueue the follow-ups in the same transaction."""

    result: Any = None
    follow_ups: Iterable[FollowUp] = ()


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run the job again after the delay; this run does not count as an attempt."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Count this attempt as failed and try again after the delay, while attempts are left."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Discard:
    """Give up: the job goes to the dead letters."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job as cancelled."""

    reason: str


Unfinished = Snooze | RetryAfter | Discard | Cancel
"""The outcomes that leave the job uncompleted; a caller-owned handler may return them too."""
