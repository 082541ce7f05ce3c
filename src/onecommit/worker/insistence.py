"""Runs a call until the database answers it."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from onecommit.calls.call import Call
from onecommit.errors import StoreUnavailable
from onecommit.store.async_store import AsyncStore, AsyncStoreTransaction
from onecommit.telemetry.events import Emit, Reconnected, Reconnecting

T = TypeVar("T")

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 5.0


class Insistence:
    """Repeats a call for ever while the store is unavailable, with a growing pause, and says so.

    Only for calls that are idempotent under repetition: a reply may have been lost after the server
    did the work. Whoever waits bounds the whole with a timeout.
    """

    def __init__(self, store: AsyncStore, *, emit: Emit) -> None:
        self.unanswered = 0
        """Calls that have failed and are being repeated."""
        self._store = store
        self._emit = emit

    async def run(self, call: Call[T]) -> T:
        """The answer of the call, however long it takes."""
        return await self._insist(lambda: self._store.run(call), call.routine.name)

    async def transact(
        self, work: Callable[[AsyncStoreTransaction], Awaitable[T]], *, operation: str
    ) -> T:
        """What the work in one transaction comes to, however long it takes."""
        return await self._insist(lambda: self._store.transact(work), operation)

    async def _insist(self, ask: Callable[[], Awaitable[T]], operation: str) -> T:
        try:
            return await ask()
        except StoreUnavailable as error:
            first = error
        self.unanswered += 1
        try:
            return await self._repeat(ask, operation, first)
        finally:
            self.unanswered -= 1

    async def _repeat(
        self, ask: Callable[[], Awaitable[T]], operation: str, error: StoreUnavailable
    ) -> T:
        failures = 1
        while True:
            await self._pause(operation, error, failures)
            try:
                answer = await ask()
            except StoreUnavailable as again:
                failures, error = failures + 1, again
            else:
                self._emit(Reconnected(operation=operation, attempts=failures))
                return answer

    async def _pause(self, operation: str, error: StoreUnavailable, failures: int) -> None:
        pause = min(_FIRST_PAUSE * 2.0 ** min(failures, 20), _LONGEST_PAUSE)
        pause *= 0.5 + random.random()  # noqa: S311 - jitter, not a secret
        self._emit(
            Reconnecting(
                operation=operation,
                failure=error.message,
                attempt=failures,
                pause_seconds=round(pause, 3),
            )
        )
        await asyncio.sleep(pause)
