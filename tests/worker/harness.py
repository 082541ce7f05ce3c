"""Workers with short times, and what they report."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeVar

from onecommit.app.app import App
from onecommit.telemetry.events import Event
from onecommit.worker import Worker, WorkerSettings

E = TypeVar("E", bound=Event)

PATIENCE = 30.0


class Interfering:
    """The store of a runner, with something done after the answer of one routine has come."""

    def __init__(self, runner: Any, routine: str, act: Any) -> None:
        self._store = runner._store
        self._routine = routine
        self._act = act
        runner._store = runner._insistence._store = self

    async def run(self, call: Any) -> Any:
        answer = await self._store.run(call)
        if call.routine.name == self._routine and self._act is not None:
            act, self._act = self._act, None
            act()
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Events:
    """Collects events from every thread; a test waits for the one it expects."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.seen.append(event)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind so far."""
        return [event for event in self.seen if isinstance(event, kind)]

    async def wait_for(self, kind: type[E], *, count: int = 1) -> E:
        """The last of `count` events of one kind, as soon as they have come."""
        async with asyncio.timeout(PATIENCE):
            while len(self.of(kind)) < count:
                self._news.clear()
                await self._news.wait()
        return self.of(kind)[count - 1]


async def start_worker(app: App, events: Events, **settings: Any) -> Worker:
    """A started worker; its queues are those of the registered jobs."""
    settings.setdefault("work", app.default_work())
    queues = sorted(app.registry.queues) or ([] if settings["work"] else ["default"])
    settings.setdefault("queues", dict.fromkeys(queues, 10))
    settings.setdefault("drain_budget", 5.0)
    settings.setdefault("cancel_grace", 2.0)
    return await Worker(app, WorkerSettings(**settings), emit=events).start()


async def eventually(condition: Callable[[], Awaitable[bool] | bool], *, what: str) -> None:
    """Return as soon as the condition is seen to hold; there is no event for what it looks at."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not (await seen if isawaitable(seen := condition()) else seen):
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:.0f} s: {what}") from None
