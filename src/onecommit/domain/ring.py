"""The ring of chapters as operators see it: what stands, what is due, and what holds it back."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """Where the ring and its maintenance stand at the time `at`."""

    at: datetime
    ring_size: int
    """Chapters for which there is room."""
    oldest: int
    head: int
    """The chapter that is written to."""
    head_is_full: bool
    """It waits to be closed."""
    reclaim_due_at: datetime | None
    """Of the oldest; None while it is the head."""
    leader: int | None
    """The worker that leads, or led last."""
    leader_until: datetime | None
    promotion_due_at: datetime | None
    """The time of the first scheduled job."""

    @property
    def used(self) -> int:
        """Chapters that stand."""
        return self.head - self.oldest + 1

    @property
    def is_stuck(self) -> bool:
        """Whether the head should be closed, and there is no room for the next chapter."""
        return self.used >= self.ring_size and self.head_is_full

    @property
    def is_led(self) -> bool:
        """Whether a worker leads: without one nothing is promoted, rescued or reclaimed."""
        return self.leader_until is not None and self.leader_until > self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class ChapterPin:
    """Open attempts that keep the oldest chapter from being reclaimed."""

    queue: str | None
    claimed: bool
    attempts: int
    job_ids: list[int]
    """Some of their jobs."""

    def in_words(self) -> str:
        """What is open, and where."""
        state = "claimed but not closed" if self.claimed else "not claimed"
        jobs = ", ".join(map(str, self.job_ids))
        return f"{self.attempts} attempts of queue {self.queue} are {state} (jobs {jobs}, …)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A chapter that stands."""

    chapter: int
    slot: int
    is_head: bool
    below_tail: bool
    """Nothing of it is looked at any more; its files are not emptied yet."""
    opened_at: datetime
    closed_at: datetime | None
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RingView:
    """The ring: its chapters, and what holds back the oldest."""

    health: StoreHealth
    chapters: tuple[Chapter, ...]
    pins: tuple[ChapterPin, ...]

    def obstacles(self) -> list[str]:
        """Sentences that say what keeps the ring from turning; none while nothing does."""
        return list(self._obstacles())

    def _obstacles(self) -> Iterator[str]:
        health = self.health
        if health.is_stuck:
            yield (
                f"chapter {health.head} is due to be closed, but all {health.ring_size} slots are in use:"
                f" it grows until chapter {health.oldest} is reclaimed"
            )
        if not health.is_led:
            yield "no worker leads, so no chapter is opened or reclaimed"
        for pin in self.pins:
            yield f"chapter {health.oldest} stays while {pin.in_words()}"
