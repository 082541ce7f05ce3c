"""Tasks that nobody waits for: kept alive, and heard when they fail."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """A set of tasks; an exception that one of them ends with goes to `on_error`."""

    def __init__(self, *, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(
        self,
        work: Coroutine[Any, Any, None],
        *,
        name: str,
        context: contextvars.Context | None = None,
    ) -> None:
        """Run the coroutine in a task of its own."""
        task = self._loop.create_task(work, name=name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def wait(self, *, timeout: float | None = None) -> bool:
        """Wait until no task is left, those included that start meanwhile; false after `timeout`."""
        try:
            async with asyncio.timeout(timeout):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            return False
        return True

    async def wait_for_change(self) -> None:
        """Return when a task has ended, or somebody noted a change."""
        if self._changed is None:
            self._changed = self._loop.create_future()
        await asyncio.shield(self._changed)

    def note_change(self) -> None:
        """Let those go on who wait for a change."""
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    async def cancel(self, *, timeout: float) -> None:
        """Cancel what still runs and wait a little for it to end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.note_change()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)
