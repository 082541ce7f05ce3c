"""Listens for the store's notices and proves that they arrive."""

import asyncio
import secrets
from collections.abc import Callable

from onecommit.errors import StoreUnavailable
from onecommit.store.async_store import AsyncListener, AsyncStore
from onecommit.telemetry.events import Emit, ListenerReady, ListenerSilent, ListenerUnavailable

TEST_BUDGET = 3.0
"""How many seconds a notice that we sent may take to come back."""
_TEST_INTERVAL = 60.0
_RETRY_AFTER_SILENCE = 60.0
_RETRY_AFTER_LOSS = 1.0


def new_test() -> str:
    """A notice to oneself, which every other listener passes over."""
    return "t" + secrets.token_hex(8)


class _Silent(Exception):
    """A notice that we sent did not come back."""


class Notifier:
    """Hands notices on, while a notice of our own, sent over another connection, comes back.

    A transaction pooler accepts LISTEN and delivers nothing, and a half-open connection looks alive;
    a test that is repeated is the only way to know. While deaf, the worker polls.
    """

    name = "notifier"

    def __init__(
        self, store: AsyncStore, *, emit: Emit, on_notice: Callable[[str], None], poll: float
    ) -> None:
        self.listening = False
        """Whether notices arrive."""
        self._store = store
        self._emit = emit
        self._on_notice = on_notice
        self._poll = poll
        self._reported: type[ListenerUnavailable] | None = None
        self._token = ""
        self._heard = asyncio.Event()

    async def run_once(self) -> float | None:
        """Listen until the connection is lost or falls silent; then pause before the next try."""
        pause, why = _RETRY_AFTER_LOSS, ListenerUnavailable
        try:
            async with self._store.listen() as listener, asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(listener))
                group.create_task(self._keep_testing())
        except* _Silent:
            pause, why = _RETRY_AFTER_SILENCE, ListenerSilent
        except* StoreUnavailable:
            pause, why = _RETRY_AFTER_LOSS, ListenerUnavailable
        finally:
            self.listening = False
        self._report_deaf(why)
        return pause

    async def _pass_on(self, listener: AsyncListener) -> None:
        async for payload in listener.notices():
            if payload == self._token:
                self._heard.set()
            elif not payload.startswith("t"):
                self._on_notice(payload)
        raise StoreUnavailable("the listening connection ended")

    async def _keep_testing(self) -> None:
        while True:
            self._heard.clear()
            self._token = new_test()
            await self._store.notify(self._token)
            try:
                async with asyncio.timeout(TEST_BUDGET):
                    await self._heard.wait()
            except TimeoutError:
                raise _Silent from None
            self._hear()
            await asyncio.sleep(_TEST_INTERVAL)

    def _hear(self) -> None:
        if not self.listening:
            self.listening = True
            self._reported = None
            self._emit(ListenerReady())
            self._on_notice("")

    def _report_deaf(self, why: type[ListenerUnavailable]) -> None:
        if self._reported is not why:
            self._reported = why
            self._emit(why(poll_seconds=self._poll))
