"""What a system must offer so that every scenario measures it in the same way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, runtime_checkable

Handled = Callable[[int], None]
"""Called by a handler with the job's number; the worker process counts and times these calls."""

Enqueue = Callable[[int], Awaitable[None]]
"""Enqueues one job, by its number, in the transaction that handed this function out."""

More = Literal["", "nothing", "completion"]
"""A settling transaction's second statement: none, one that does nothing, or the completion."""


def chunks(numbers: range, size: int) -> Iterator[range]:
    """Cut a range of job numbers into consecutive ranges of at most `size`."""
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


class Producer(Protocol):
    """An open client of a job system that enqueues no-op jobs carrying `{"n": number}`."""

    async def enqueue_one(self, number: int) -> None:
        """Enqueue one job and return once it is committed."""
        ...

    async def enqueue_bulk(self, numbers: range) -> None:
        """Enqueue all jobs the fastest documented way, in chunks of the system's choice."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Enqueue]:
        """Open a transaction on a connection of its own: commit at the end, roll back on error."""
        ...


class Acceptor(Protocol):
    """An open client that accepts effects at a provider, which does nothing."""

    async def accept(self, number: int) -> None:
        """Accept one item and return once it is committed."""
        ...


class System(Protocol):
    """What is installed, runs and is looked at in every scenario, with jobs or with Work."""

    name: str
    distribution: str
    """The package whose version the report names."""
    settings: str
    """How the system is driven, in a few words, for the report."""

    async def setup(self, dsn: str) -> None:
        """Install the schema into an empty database."""
        ...

    async def work(self, dsn: str, handled: Handled) -> None:
        """Run one worker for ever; its process is killed when the measurement is over."""
        ...

    async def open_jobs(self, dsn: str) -> int:
        """Count the jobs, or items of Work, that are not durably closed."""
        ...


class Adapter(System, Protocol):
    """A job system as the scenarios see it."""

    wakes: bool
    """Whether an idle worker is told of new jobs, so that pickup and idling mean something."""

    def producer(self, dsn: str, connections: int) -> AbstractAsyncContextManager[Producer]:
        """Open a client with that many connections already established."""
        ...


class WorkAdapter(System, Protocol):
    """A system of durable effects as the scenarios of Work see it."""

    def acceptor(
        self, dsn: str, *, connections: int, scopes: int
    ) -> AbstractAsyncContextManager[Acceptor]:
        """Open a client for so many accepting tasks; items take turns among the scopes, if it has any."""
        ...


@runtime_checkable
class CallerOwned(Protocol):
    """A system whose jobs can be completed inside the application's own transaction."""

    async def settle(self, dsn: str, *, connections: int, seconds: float, complete: bool) -> float:
        """Return how many settling transactions a second commit, with or without a completion."""
        ...

    async def settle_claimed(self, dsn: str, *, connections: int, count: int, more: More) -> float:
        """The same for so many attempts that were claimed before, and whose handlers return afterwards."""
        ...

    def asking(
        self, dsn: str, *, connections: int, answer: float, held: bool
    ) -> AbstractAsyncContextManager[None]:
        """Settle with a provider that takes so many seconds; its answer is awaited inside the transaction or before.

        Entered when the first invoice is settled; ended with the block.
        """
        ...


Look = Callable[[], Awaitable[int]]
"""Looks once for what is due and returns how many items it was shown."""


@runtime_checkable
class Storing(Protocol):
    """A system of Work that can be given a past, and whose Work belongs to scopes."""

    async def store(self, dsn: str, *, first: int, count: int, scopes: int, waiting: float) -> None:
        """Store so many items, numbered from `first`: that part waits until tomorrow, the others are done."""
        ...


@runtime_checkable
class Discovering(Protocol):
    """A system of Work whose worker looks for what is due by a call of its own."""

    async def store_due(self, dsn: str, *, count: int, scopes: int) -> None:
        """Store so many items that nobody has begun: one in a hundred is due, the others tomorrow."""
        ...

    def looks(self, dsn: str, *, largest: bool) -> AbstractAsyncContextManager[Look]:
        """Hand out the call of a worker with default settings, or one for as much as may be asked for."""
        ...
