"""Calls the application's observers with events, after the fact and beside the work."""

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from onecommit.app.observers import Observers
from onecommit.domain.attempt import Attempt
from onecommit.domain.closing import Finish
from onecommit.domain.follow_up import Transition
from onecommit.telemetry.events import (
    AttemptCancelled,
    AttemptCompleted,
    AttemptEnded,
    AttemptExhausted,
    AttemptRescued,
    AttemptRetried,
    Emit,
    Event,
    ObserverFailed,
    ObserversBehind,
    ObserversCaughtUp,
    names_of,
)
from onecommit.telemetry.tracebacks import frames_of
from onecommit.worker.threads import HandlerThreads

MOST_WAITING = 10_000
"""Events that wait for observers; more are dropped."""
_LAST_CALLS = 2.0
"""Seconds that observers get when the worker has ended."""
_EVENTS: dict[Transition, type[AttemptEnded]] = {
    Transition.COMPLETED: AttemptCompleted,
    Transition.RETRIED: AttemptRetried,
    Transition.EXHAUSTED: AttemptExhausted,
    Transition.CANCELLED: AttemptCancelled,
    Transition.RESCUED: AttemptRescued,
}


class Observation:
    """Passes every event on at once, and hands those that are observed to a task of its own.

    Plain functions run in one thread, one after another. Whatever an observer does, the worker goes on:
    an exception is reported, and while observers are behind their events are dropped.
    """

    def __init__(self, observers: Observers, *, emit: Emit) -> None:
        self._observers = observers
        self._pass_on = emit
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        self._lock = threading.Lock()
        self._threads = HandlerThreads(limit=1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def emit(self, event: Event) -> None:
        """Report the event; callable from any thread."""
        self._pass_on(event)
        if self._observers and self._observers.observe(event):
            self._offer(event)

    def pass_on_to(self, emit: Emit) -> None:
        """Pass every event on to this function too, from now on."""
        first = self._pass_on

        def both(event: Event) -> None:
            first(event)
            emit(event)

        self._pass_on = both

    def start(self) -> None:
        """Begin to call observers."""
        if self._observers:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.create_task(self._work(), name="onecommit:observers")

    async def stop(self) -> None:
        """Let observers have what waits for them, within a bound, and end."""
        self._closing = True
        self._news.set()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=_LAST_CALLS)
            if not done:
                self._task.cancel()
                self._threads.abandon()
                await asyncio.wait([self._task], timeout=_LAST_CALLS)
        self._threads.abandon()

    def _offer(self, event: Event) -> None:
        with self._lock:
            fits = len(self._waiting) < MOST_WAITING
            if fits:
                self._waiting.append(event)
            else:
                self._dropped += 1
            first_dropped = self._dropped == 1 and not fits
        if first_dropped:
            self._pass_on(ObserversBehind(waiting=MOST_WAITING))
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    async def _work(self) -> None:
        while not (self._closing and not self._waiting):
            await self._news.wait()
            self._news.clear()
            while events := self._take():
                for kind, observer in self._observers:
                    await self._call(observer, [e for e in events if isinstance(e, kind)])
            if self._closing:
                self._news.set()

    def _take(self) -> list[Event]:
        with self._lock:
            events = list(self._waiting)
            self._waiting.clear()
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._pass_on(ObserversCaughtUp(dropped=dropped))
        return events

    async def _call(self, observer: Callable[[Any], Any], events: Sequence[Event]) -> None:
        if not events:
            return
        if not inspect.iscoroutinefunction(observer):
            await self._threads.run(partial(self._call_each, observer, events))
            return
        for event in events:
            try:
                await observer(event)
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and self._closing:
                    raise
                self._report(observer, event, error)

    def _call_each(self, observer: Callable[[Any], Any], events: Sequence[Event]) -> None:
        for event in events:
            try:
                observer(event)
            except BaseException as error:  # noqa: BLE001 - as above
                self._report(observer, event, error)

    def _report(self, observer: Callable[[Any], Any], event: Event, error: BaseException) -> None:
        # Not to the observers themselves: one that fails at its own failure would never end.
        self._pass_on(
            ObserverFailed(
                observer=getattr(observer, "__qualname__", type(observer).__qualname__),
                event=event.name,
                failure=type(error).__qualname__,
                frames=frames_of(error),
            )
        )


def report_end(attempt: Attempt, finish: Finish | None, *, emit: Emit) -> None:
    """Say how an attempt ended that was recorded just now; None stands for its completion."""
    transition = Transition.COMPLETED if finish is None else finish.transition
    if transition is not None:
        emit(_EVENTS[transition](**names_of(attempt), code=finish.code if finish else None))
