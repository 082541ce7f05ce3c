"""What the worker asks the store to record about attempts, and what it answers."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from onecommit.domain.attempt import Attempt
from onecommit.domain.follow_up import FollowUp, Transition
from onecommit.domain.job import Outcome


class Finish(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of an attempt, as a rule other than its completion.

    `retried` counts and becomes `failed` when attempts are exhausted; `snoozed` does not count, and
    with no delay puts the job back at once.
    """

    attempt: Attempt
    outcome: Outcome
    delay_us: int = 0
    code: str | None = None
    detail: str | None = None

    @property
    def transition(self) -> Transition | None:
        """What becomes of the job; None if it only goes back to its queue."""
        match self.outcome:
            case Outcome.COMPLETED:
                return Transition.COMPLETED
            case Outcome.RETRIED if self.attempt.attempt < self.attempt.max_attempts:
                return Transition.RETRIED
            case Outcome.RETRIED | Outcome.FAILED | Outcome.DISCARDED:
                return Transition.EXHAUSTED
            case Outcome.CANCELLED:
                return Transition.CANCELLED
            case _:
                return None


class FollowedUp(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of an attempt, completion included, with the jobs to enqueue in the same transaction."""

    finish: Finish
    follow_ups: tuple[FollowUp, ...]
    progressed: bool = False
    """Whether the attempt published progress."""


class Verdict(StrEnum):
    """Why a closing was not recorded."""

    STALE = "stale"
    """Another outcome closed the attempt."""
    RECYCLED = "recycled"
    """The chapter that held the attempt is gone."""
    BUSY = "busy"
    """A transaction that may end the attempt still runs: ask again."""


class Loss(NamedTuple):
    """An item that was not recorded; every item without one was."""

    position: int
    """Of the item in the list passed, from 0."""
    verdict: Verdict


class Cancellation(NamedTuple):
    """A running attempt that an operator asked to stop."""

    job_id: int
    run_lease: int
