"""Items of Work that this process runs, and why some of them were asked to stop."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from onecommit.domain.work import WorkFence
from onecommit.domain.work_attempt import ClaimedWork, WorkEnd
from onecommit.worker.work.apart import Apart


class Stop(StrEnum):
    """Why the worker cancelled an executor; also the code that its attempt ends with."""

    LEASE_LOST = "lease_lost"
    LEASE_ENDING = "lease_ending"
    """It cannot be renewed any more, so the attempt completes while it still can."""
    SHUTDOWN = "worker_stopping"


class Invocation:
    """One claimed item, from its claim to the record of its end."""

    __slots__ = (
        "_asked_at",
        "claimed",
        "executing",
        "expires_at",
        "is_cancelled",
        "stop",
        "timer",
    )

    def __init__(self, claimed: ClaimedWork, *, asked_at: float) -> None:
        self.claimed = claimed
        self._asked_at = asked_at
        self.expires_at = 0.0
        """When the lease ends, on the loop's clock; reckoned from before the claim, so rather early."""
        self.extend(claimed.lease_expires_at)
        self.is_cancelled = False
        """The Work was asked to stop, or the attempt lost its lease."""
        self.stop: Stop | None = None
        self.executing: Apart[WorkEnd] | None = None
        """The executor, while it runs."""
        self.timer: asyncio.TimerHandle | None = None

    @property
    def fence(self) -> WorkFence:
        """What every operation of the attempt names."""
        return self.claimed.fence

    @property
    def stop_code(self) -> str | None:
        """Why the executor was asked to stop, if it was."""
        return None if self.stop is None else self.stop.value

    def extend(self, lease_expires_at: datetime) -> None:
        """Take note of when the lease ends, by the clock of the database."""
        lasts = (lease_expires_at - self.claimed.claimed_at).total_seconds()
        self.expires_at = self._asked_at + lasts

    def interrupt(self, stop: Stop) -> None:
        """Cancel the executor, once; what is recorded afterwards is not interrupted."""
        if self.stop is None:
            self.stop = stop
            self.is_cancelled = True
            if self.executing is not None:
                self.executing.cancel()


class Invocations:
    """Every item that is claimed here; what an executor's invocation asks about itself."""

    def __init__(self, *, schema: str, store_id: UUID) -> None:
        self.schema = schema
        self.store_id = store_id
        self._running: dict[tuple[int, int], Invocation] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Invocation]:
        return iter(list(self._running.values()))

    def add(self, invocation: Invocation) -> None:
        """Take note of a claim."""
        self._running[_key(invocation.fence)] = invocation

    def remove(self, invocation: Invocation) -> None:
        """Take note of an end."""
        self._running.pop(_key(invocation.fence), None)

    def find(self, fence: WorkFence) -> Invocation | None:
        """The item of a fence; callable from any thread."""
        return self._running.get(_key(fence))

    def is_cancelled(self, fence: WorkFence) -> bool:
        """Whether the attempt was asked to stop; callable from any thread."""
        invocation = self.find(fence)
        return invocation is None or invocation.is_cancelled


def _key(fence: WorkFence) -> tuple[int, int]:
    return fence.work_id, fence.lease_generation
