"""How every loop of the worker starts, repeats, fails and stops."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from onecommit.telemetry.events import Emit, LoopFailed
from onecommit.telemetry.tracebacks import frames_of

_CANCEL_SECONDS = 2.0


class Loop(Protocol):
    """One job of the runtime, repeated for ever."""

    @property
    def name(self) -> str:
        """What events call it."""

    async def run_once(self) -> float | None:
        """Do one round; return the seconds until the next, or None to wait for `wake` alone."""


class Lifecycle:
    """Runs one loop: started once, woken at will, stopped as often as anyone likes.

    A round that raises is reported and repeated after a growing pause; an exception that
    `is_fatal` accepts ends the loop and goes to `on_fatal` instead.
    """

    def __init__(
        self,
        loop: Loop,
        *,
        emit: Emit,
        is_fatal: Callable[[BaseException], bool],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self.loop = loop
        self._emit = emit
        self._is_fatal = is_fatal
        self._on_fatal = on_fatal
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether the loop was started and has not ended."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin; a second call is an error of ours."""
        if self._task is not None:
            message = f"the loop {self.loop.name} was started before"
            raise RuntimeError(message)
        self._task = asyncio.create_task(self._repeat(), name=f"onecommit:{self.loop.name}")

    def wake(self) -> None:
        """Run the next round now instead of after the pause."""
        self._wake.set()

    def request_stop(self) -> None:
        """End after the current round."""
        self._stopping = True
        self._wake.set()

    async def stop(self, *, timeout: float) -> None:
        """End after the current round, or cancel it when it takes longer than `timeout` seconds."""
        self.request_stop()
        if self._task is None or self._task is asyncio.current_task():
            return
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CANCEL_SECONDS)

    async def _repeat(self) -> None:
        failures = 0
        while not self._stopping:
            self._wake.clear()
            try:
                pause = await self.loop.run_once()
                failures = 0
            except Exception as error:  # noqa: BLE001 - a loop must outlive whatever one round meets
                if self._is_fatal(error):
                    self._on_fatal(error)
                    return
                failures += 1
                pause = min(0.1 * 2**failures, 5.0)
                self._report(error, pause)
            await self._pause(pause)

    def _report(self, error: Exception, pause: float) -> None:
        self._emit(
            LoopFailed(
                loop=self.loop.name,
                failure=type(error).__qualname__,
                frames=frames_of(error),
                pause_seconds=pause,
            )
        )

    async def _pause(self, seconds: float | None) -> None:
        if self._stopping or self._wake.is_set():
            return
        if seconds is None:
            await self._wake.wait()
        elif seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                return
