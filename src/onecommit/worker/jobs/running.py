"""Attempts whose handlers are running, and why some of them were asked to stop."""

import asyncio
import contextlib
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from onecommit.domain.attempt import Attempt
from onecommit.worker.jobs.kind import Kind

if TYPE_CHECKING:
    from onecommit.worker.jobs.station import Station


class Interruption(StrEnum):
    """Why the worker asked a handler to stop."""

    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    """The store has closed the attempt already: an operator cancelled it, or its deadline passed."""
    SHUTDOWN = "shutdown"
    RESCUED = "rescued"
    """This incarnation was declared dead, so the attempt belongs to somebody else."""
    OVERDUE = "overdue"
    """It went on after its time limit: the attempt was closed without it, and nothing it does counts."""
    ABANDONED = "abandoned"
    """The worker ends and the handler does not: its attempt stays open, for rescue to close."""


def current_task() -> "asyncio.Task[object]":
    """The task that this code runs in."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("handlers run in tasks")
    return task


class Run:
    """One handler that waits for something: the task to cancel, and the limits it has."""

    __slots__ = (
        "attempt",
        "complained",
        "ended",
        "has_slot",
        "interrupted_at",
        "interruption",
        "kind",
        "parked",
        "station",
        "task",
        "until",
        "waits",
    )

    def __init__(
        self, attempt: Attempt, kind: Kind, task: "asyncio.Task[object]", *, until: float | None
    ) -> None:
        self.attempt = attempt
        self.kind = kind
        self.task = task
        self.until = until
        """When it times out, on the loop's clock."""
        self.interruption: Interruption | None = None
        self.interrupted_at = 0.0
        self.complained = False
        self.ended = False
        """The handler has ended; recording that must not be interrupted."""
        self.station: Station | None = None
        self.parked = 0
        """How many callbacks it waits for."""
        self.has_slot = True
        """False while it waits for a callback and others run in its place."""
        self.waits: set[asyncio.Future[object]] = set()
        """The callbacks that it waits for; an interruption ends these waits, in a thread too."""

    @property
    def is_current(self) -> bool:
        """Whether its task is the one that runs now; not if the task is thrown away unfinished."""
        try:
            return asyncio.current_task() is self.task
        except RuntimeError:  # no loop is running
            return False

    async def end(self) -> None:
        """Note that the handler has ended. A cancellation that it left behind is spent here."""
        self.ended = True
        if self.task.cancelling():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            while self.task.uncancel():
                continue


class Running:
    """The handlers of this process that wait for something, by attempt."""

    def __init__(self) -> None:
        self._runs: dict[tuple[int, int], Run] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self._runs.values()))

    def add(self, run: Run) -> None:
        """Take note that a handler waits."""
        self._runs[run.attempt.job_id, run.attempt.run_lease] = run

    def remove(self, run: Run) -> None:
        """Take note that it has ended."""
        self._runs.pop((run.attempt.job_id, run.attempt.run_lease), None)

    def find(self, job_id: int, run_lease: int) -> Run | None:
        """The run of an attempt; callable from any thread."""
        return self._runs.get((job_id, run_lease))

    def find_task(self, task: "asyncio.Task[object] | None") -> Run | None:
        """The run that keeps this task."""
        return next((run for run in self if run.task is task), None)
