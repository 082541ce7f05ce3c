"""Ends of attempts that are recorded together."""

from collections.abc import Sequence
from typing import Protocol

from onecommit.calls.attempts import complete_jobs, finish_jobs
from onecommit.calls.call import Call
from onecommit.calls.follow_ups import close_with_follow_ups
from onecommit.domain.attempt import Attempt
from onecommit.domain.closing import Finish, FollowedUp, Loss
from onecommit.domain.identity import Epoch
from onecommit.domain.job import Outcome


class ClosingBatch(Protocol):
    """What the completer sends: whole, or in parts when the store does not take all of it."""

    @property
    def attempts(self) -> list[Attempt]:
        """The attempts that end."""

    def call(self, *, epoch: Epoch) -> Call[list[Loss]]:
        """The call that records them."""

    def outcome(self, position: int) -> Outcome:
        """What one item wants to record."""

    def finish(self, position: int) -> Finish | None:
        """The end of one item; None for a completion that leaves nothing to tell."""

    def part(self, positions: Sequence[int]) -> "ClosingBatch":
        """A batch of these items alone."""


class Completions:
    """Attempts that completed; few have a result or progress, so these are kept aside."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self._details: dict[int, str] = {}
        self._progressed: set[int] = set()

    def add_with(self, attempt: Attempt, *, detail: str | None, progressed: bool) -> None:
        """Add an attempt that leaves something behind."""
        if detail is not None:
            self._details[len(self.attempts)] = detail
        if progressed:
            self._progressed.add(len(self.attempts))
        self.attempts.append(attempt)

    def call(self, *, epoch: Epoch) -> Call[list[Loss]]:
        """The call that completes them."""
        details = None
        if self._details:
            details = [self._details.get(position) for position in range(len(self.attempts))]
        side = {self.attempts[position].job_id for position in self._progressed}
        side.update(
            attempt.job_id
            for attempt in self.attempts
            if attempt.options is not None and attempt.may_hold_unique_key
        )
        return complete_jobs(self.attempts, details=details, side=list(side), epoch=epoch)

    def outcome(self, _: int) -> Outcome:
        """Always completed."""
        return Outcome.COMPLETED

    def finish(self, _: int) -> None:
        """They say nothing of themselves but that they completed."""

    def part(self, positions: Sequence[int]) -> "Completions":
        """A batch of these items alone."""
        part = Completions()
        for position in positions:
            part.add_with(
                self.attempts[position],
                detail=self._details.get(position),
                progressed=position in self._progressed,
            )
        return part


class Finishes:
    """Attempts that ended otherwise."""

    def __init__(self, finishes: list[Finish] | None = None) -> None:
        self._finishes = finishes or []
        self.attempts = [finish.attempt for finish in self._finishes]

    def add(self, finish: Finish) -> None:
        """Add one."""
        self._finishes.append(finish)
        self.attempts.append(finish.attempt)

    def call(self, *, epoch: Epoch) -> Call[list[Loss]]:
        """The call that ends them."""
        return finish_jobs(self._finishes, epoch=epoch)

    def outcome(self, position: int) -> Outcome:
        """What the handler, or the worker for it, chose."""
        return self._finishes[position].outcome

    def finish(self, position: int) -> Finish:
        """The end of one item."""
        return self._finishes[position]

    def part(self, positions: Sequence[int]) -> "Finishes":
        """A batch of these items alone."""
        return Finishes([self._finishes[position] for position in positions])


class FollowedUps:
    """Attempts that end in any way, each with the jobs to enqueue in the same transaction."""

    def __init__(self, items: list[FollowedUp] | None = None) -> None:
        self.items = items or []
        self.attempts = [item.finish.attempt for item in self.items]

    def add(self, item: FollowedUp) -> None:
        """Add one."""
        self.items.append(item)
        self.attempts.append(item.finish.attempt)

    def call(self, *, epoch: Epoch) -> Call[list[Loss]]:
        """The call that ends them and enqueues what follows."""
        return close_with_follow_ups(self.items, epoch=epoch)

    def outcome(self, position: int) -> Outcome:
        """What the handler, or the worker for it, chose."""
        return self.items[position].finish.outcome

    def finish(self, position: int) -> Finish:
        """The end of one item."""
        return self.items[position].finish

    def part(self, positions: Sequence[int]) -> "FollowedUps":
        """A batch of these items alone."""
        return FollowedUps([self.items[position] for position in positions])
