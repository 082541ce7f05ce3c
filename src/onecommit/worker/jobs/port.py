"""What a handler's context asks of the worker."""

import asyncio
import concurrent.futures
from collections.abc import Coroutine
from typing import Any, TypeVar

from onecommit.domain.attempt import Attempt
from onecommit.domain.callback import Callback
from onecommit.worker.jobs.callbacks import Callbacks
from onecommit.worker.jobs.progress import Progress
from onecommit.worker.jobs.running import Running

T = TypeVar("T")


class RuntimePort:
    """The worker as the contexts of its handlers see it."""

    def __init__(
        self, *, schema: str, running: Running, progress: Progress, callbacks: Callbacks
    ) -> None:
        self.schema = schema
        self._running = running
        self._progress = progress
        self._callbacks = callbacks
        self._loop = asyncio.get_running_loop()

    def is_cancelled(self, attempt: Attempt) -> bool:
        """Whether the attempt was asked to stop; callable from any thread."""
        run = self._running.find(attempt.job_id, attempt.run_lease)
        return run is not None and run.interruption is not None

    def set_progress(self, attempt: Attempt, progress: str) -> None:
        """Take note of progress; callable from any thread."""
        self._progress.publish(attempt, progress)

    async def flush_progress(self, attempt: Attempt) -> None:
        """Return when the newest progress is stored."""
        await self._progress.flush(attempt)

    def flush_progress_from_thread(self, attempt: Attempt) -> None:
        """The same for a handler that runs in a thread."""
        self._in_loop(self._progress.flush(attempt))

    async def register_callback(
        self, attempt: Attempt, *, timeout_us: int, name: str | None
    ) -> Callback:
        """Register a callback of the attempt."""
        return await self._callbacks.register(attempt, timeout_us=timeout_us, name=name)

    async def wait_for_callback(self, callback: Callback) -> Any:
        """Return the payload that the callback was resumed with."""
        return await self._callbacks.wait(callback)

    def register_callback_from_thread(
        self, attempt: Attempt, *, timeout_us: int, name: str | None
    ) -> Callback:
        """The same for a handler that runs in a thread."""
        return self._in_loop(self._callbacks.register(attempt, timeout_us=timeout_us, name=name))

    def wait_for_callback_from_thread(self, callback: Callback) -> Any:
        """The same for a handler that runs in a thread, which it keeps, and with it the slot."""
        return self._in_loop(self._callbacks.wait(callback, keep_slot=True))

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError from None
