"""What a handler's context asks of the worker."""

import asyncio

from onecommit.domain.attempt import Attempt
from onecommit.worker.progress import Progress
from onecommit.worker.running import Running


class RuntimePort:
    """The worker as the contexts of its handlers see it."""

    def __init__(self, *, schema: str, running: Running, progress: Progress) -> None:
        self.schema = schema
        self._running = running
        self._progress = progress
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
        flush = self._progress.flush(attempt)
        asyncio.run_coroutine_threadsafe(flush, self._loop).result()
