"""Where ``def`` handlers run: a bounded pool of threads that never keeps the process alive."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable

from onecommit.worker import forking

_Outcome = tuple[object, BaseException | None]
_Item = tuple[Callable[[], object], "asyncio.Future[_Outcome]", asyncio.AbstractEventLoop]


class HandlerThreads:
    """Runs plain functions beside the event loop.

    Unlike `concurrent.futures`, the threads are daemons: nobody can stop a Python thread, and a
    handler that never returns must not keep a drained worker from ending.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._items: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._waiting: set[asyncio.Future[_Outcome]] = set()

    async def run(self, function: Callable[[], object]) -> object:
        """Call the function in a thread with a copy of the current context, and wait for it.

        Cancelling the waiting task does not reach the function. The wait goes on until it returns or
        `abandon` is called: an attempt must not be released while its handler still runs.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome] = loop.create_future()
        context = contextvars.copy_context()
        self._items.put((lambda: context.run(function), future, loop))
        self._grow()
        self._waiting.add(future)
        try:
            result, error = await _outlast(future)
        finally:
            self._waiting.discard(future)
        if error is not None:
            raise error
        return result

    def abandon(self) -> None:
        """End every wait with a cancellation; let idle threads end and busy ones run on."""
        for future in list(self._waiting):
            future.cancel()
        for _ in self._threads:
            self._items.put(None)
        self._threads.clear()

    def _grow(self) -> None:
        if self._idle.acquire(blocking=False) or len(self._threads) >= self._limit:
            return
        name = f"onecommit-handler-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        depth = forking.depth
        while (item := self._items.get()) is not None:
            function, future, loop = item
            outcome: _Outcome
            try:
                outcome = (function(), None)
            except BaseException as error:  # noqa: BLE001 - it is raised again in the waiting task
                outcome = (None, error)
            if forking.depth != depth:
                forking.end_child(outcome[1])
            self._idle.release()
            _deliver(loop, future, outcome)
            del item, function, future, outcome


async def _outlast(future: "asyncio.Future[_Outcome]") -> _Outcome:
    while True:
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if future.cancelled():
                raise


def _deliver(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[_Outcome]", outcome: _Outcome
) -> None:
    def settle() -> None:
        if not future.done():
            future.set_result(outcome)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        return  # the loop is closed: the worker has ended and left this attempt to rescue
