"""What an executor is given: the attempt that it is, and the ways to talk about it while it runs."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from onecommit.app.async_handoff import AsyncHandoff
from onecommit.app.sync_handoff import SyncHandoff
from onecommit.domain.work import WorkFence, WorkId
from onecommit.drivers.driver import (
    AsyncCallerConnection,
    SyncCallerConnection,
    async_driver_for,
    sync_driver_for,
)

AsyncConnection = TypeVar("AsyncConnection", bound=AsyncCallerConnection)
SyncConnection = TypeVar("SyncConnection", bound=SyncCallerConnection)


class InvocationPort(Protocol):
    """What an invocation asks of the runtime that runs it; callable from any thread."""

    schema: str
    store_id: UUID

    def is_cancelled(self, fence: WorkFence) -> bool:
        """Whether the attempt was asked to stop."""


class _Invocation:
    """What both kinds of invocation share."""

    __slots__ = ("_fence", "_port", "accepted_at", "activity_id", "command_id", "deadline")

    def __init__(
        self,
        fence: WorkFence,
        port: InvocationPort,
        *,
        activity_id: UUID,
        command_id: str,
        accepted_at: datetime,
        deadline: datetime | None,
    ) -> None:
        self._fence = fence
        self._port = port
        self.activity_id = activity_id
        """The same for every attempt: give it to the provider as its idempotency key."""
        self.command_id = command_id
        self.accepted_at = accepted_at
        self.deadline = deadline

    @property
    def scope(self) -> str:
        """The scope that the Work was accepted in."""
        return self._fence.scope

    @property
    def work_id(self) -> WorkId:
        """The Work."""
        return self._fence.work_id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._fence.attempt

    @property
    def is_cancelled(self) -> bool:
        """Whether the Work was asked to stop, or the attempt lost its lease; to be looked at now and then."""
        return self._port.is_cancelled(self._fence)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of Work {self.work_id}, attempt {self.attempt}>"


class WorkInvocation(_Invocation):
    """One admitted invocation of the provider, for an `async def` executor."""

    __slots__ = ()

    async def handoff(
        self,
        connection: AsyncConnection,
        callback: Callable[[AsyncConnection], Awaitable[bool]],
    ) -> bool:
        """Write the application's own "handed over" row together with proof that this invocation holds.

        The callback gets the connection, writes in its open READ COMMITTED transaction and returns True,
        or False to take its writes back. Whatever else happens takes them back too: an error, a
        cancellation, a lease that ended meanwhile. What is returned counts when that transaction has
        committed; call the provider after that, with the connection released.

        Raises:
            WorkError: The invocation does not hold (any more); the transaction is usable.
            SavepointRefused: The transaction is inside a savepoint.
        """
        driver = async_driver_for(connection, schema=self._port.schema)
        handoff = AsyncHandoff(driver, self._fence, store_id=self._port.store_id)
        return await handoff.prepare(lambda: callback(connection))


class SyncWorkInvocation(_Invocation):
    """The same for a `def` executor, which runs in a thread."""

    __slots__ = ()

    def handoff(
        self, connection: SyncConnection, callback: Callable[[SyncConnection], bool]
    ) -> bool:
        """As `WorkInvocation.handoff`, on a sync connection."""
        driver = sync_driver_for(connection, schema=self._port.schema)
        handoff = SyncHandoff(driver, self._fence, store_id=self._port.store_id)
        return handoff.prepare(lambda: callback(connection))
