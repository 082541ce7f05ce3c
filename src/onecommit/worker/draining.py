"""How a worker ends, and how it runs its queues empty."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from onecommit.domain.attempt import Attempt
from onecommit.errors import StoreUnavailable
from onecommit.telemetry.events import Emit, WorkerDraining, WorkerStopped
from onecommit.worker.jobs import ending
from onecommit.worker.jobs.running import Interruption
from onecommit.worker.machinery import Machinery
from onecommit.worker.settings import WorkerSettings

_LAST_CALLS = 5.0
"""Seconds that each of the last calls to the store may take."""
_LAST_BREATH = 1.0
"""Seconds that cancelled tasks get where nobody wants to wait."""

_HELD_SECONDS = 5.0
"""How long to wait for a job that is due and held by another transaction: the leader may be promoting it."""
_HELD_PAUSE = 0.02


class Shutdown:
    """The steps by which a worker ends. Both ways return how many attempts are left to rescue."""

    def __init__(
        self, machinery: Machinery, *, settings: WorkerSettings, hurry: asyncio.Event, emit: Emit
    ) -> None:
        self._parts = machinery
        self._settings = settings
        self._hurry = hurry
        self._emit = emit
        self._loop = asyncio.get_running_loop()

    async def drain(self) -> int:
        """Start and claim no more, release what has not started, wait, record, deregister."""
        deadline = self._loop.time() + self._settings.drain_budget
        unstarted = self._close_stations()
        self._parts.callbacks.close()
        await self._stop_claiming()
        self._release([*unstarted, *self._close_stations()])
        if not await self._handlers_end(self._settings.drain_budget):
            self._parts.executor.interrupt_all(Interruption.SHUTDOWN)
            self._parts.work.interrupt_all()
            # Whoever is in a hurry still leaves them a moment: what ends now need not be rescued.
            await self._all_ended(_LAST_BREATH)
            await self._handlers_end(self._settings.cancel_grace)
        await self._outcomes_known(deadline - self._loop.time())
        abandoned = await self._abandon_the_rest()
        recorded = await _within(_LAST_CALLS, self._parts.completer.settle())
        await self._stop_parts()
        await _within(_LAST_CALLS, self._parts.incarnation.retire())
        await self._parts.store.close()
        return self._farewell(abandoned + (0 if recorded else self._parts.completer.unrecorded))

    async def halt(self) -> int:
        """Stop everything without another call to the store, which has fenced this process."""
        for claims in self._parts.claims.values():
            await claims.stop(timeout=0.0)
        await self._parts.work.stop_claiming(timeout=0.0)
        self._close_stations()
        self._parts.executor.interrupt_all(Interruption.RESCUED)
        self._parts.work.interrupt_all()
        await self._all_ended(_LAST_BREATH)
        abandoned = await self._abandon_the_rest()
        await self._stop_parts()
        await self._parts.store.close()
        return self._farewell(abandoned)

    async def _stop_claiming(self) -> None:
        stops = [claims.stop(timeout=_LAST_CALLS) for claims in self._parts.claims.values()]
        await asyncio.gather(*stops, self._parts.work.stop_claiming(timeout=_LAST_CALLS))

    def _close_stations(self) -> list[Attempt]:
        """Start nothing any more; return what was waiting."""
        stations = self._parts.stations.values()
        return [attempt for station in stations for attempt in station.close()]

    def _release(self, unstarted: list[Attempt]) -> None:
        for attempt in unstarted:
            self._parts.completer.finish(ending.released(attempt))
        self._emit(
            WorkerDraining(
                worker=self._parts.incarnation.worker,
                running=len(self._parts.running) + self._parts.work.running,
                released=len(unstarted),
            )
        )

    async def _handlers_end(self, seconds: float) -> bool:
        """Wait for the handlers, unless somebody is in a hurry; true if all have ended."""
        return await self._unless_in_a_hurry(self._all_ended(seconds))

    async def _unless_in_a_hurry(self, waiting: Coroutine[Any, Any, bool]) -> bool:
        """What was waited for, or false as soon as somebody is in a hurry."""
        ended = asyncio.ensure_future(waiting)
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait([ended, hurry], return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if ended.done():
            return ended.result()
        ended.cancel()
        return False

    async def _outcomes_known(self, seconds: float) -> None:
        """Let attempts of unknown outcome be decided in what is left of the budget."""
        known = self._parts.reconciler.settle(timeout=max(seconds, _LAST_BREATH))
        await self._unless_in_a_hurry(known)

    async def _all_ended(self, seconds: float) -> bool:
        stations = self._parts.stations.values()
        waits = [station.wait(timeout=seconds) for station in stations]
        return all(await asyncio.gather(*waits, self._parts.work.wait(timeout=seconds)))

    async def _abandon_the_rest(self) -> int:
        """Give up handlers that do not end, and attempts whose outcome cannot be found out."""
        abandoned = len(self._parts.running)
        self._parts.executor.abandon_all()
        self._parts.threads.abandon()
        abandoned += await self._parts.work.abandon(timeout=_LAST_BREATH)
        for station in self._parts.stations.values():
            await station.cancel(timeout=_LAST_BREATH)
        return abandoned + await self._parts.reconciler.abandon()

    async def _stop_parts(self) -> None:
        await self._parts.tasks.cancel(timeout=_LAST_BREATH)
        await self._parts.loops[self._parts.notifier.name].stop(timeout=0.0)
        await asyncio.gather(
            *(loop.stop(timeout=_LAST_BREATH) for loop in self._parts.loops.values())
        )
        await self._parts.heartbeat.stop()

    def _farewell(self, abandoned: int) -> int:
        self._emit(
            WorkerStopped(
                worker=self._parts.incarnation.worker,
                completed=self._parts.completer.completed + self._parts.reconciler.completed,
                abandoned=abandoned,
            )
        )
        return abandoned


async def run_until_empty(machinery: Machinery) -> None:
    """Return when nothing is ready, nothing is due, nothing runs and everything is recorded."""
    loop = asyncio.get_running_loop()
    gives_up_at = loop.time() + _HELD_SECONDS
    while True:
        # Read before the promotion: what is recorded after it may be due already.
        ends = machinery.ends
        promotion = await machinery.insistence.run(machinery.maintenance.promotion())
        empty = {name: each.watch() for name, each in machinery.dispatchers.items()}
        machinery.wake(None)
        for queue, event in empty.items():
            await event.wait()
            await machinery.stations[queue].settle()
        await machinery.completer.settle()
        worked = await machinery.work.run_until_empty()
        if promotion.promoted or worked or machinery.ends != ends:
            gives_up_at = loop.time() + _HELD_SECONDS
        elif promotion.is_complete or loop.time() >= gives_up_at:
            return
        else:
            await asyncio.sleep(_HELD_PAUSE)


async def _within(seconds: float, work: Coroutine[Any, Any, object]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await work
    except (TimeoutError, StoreUnavailable):
        return False
    return True
