"""Handlers that wait for callbacks: suspended in memory, woken by notices and by a poll for all of them."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec

from onecommit.calls.callbacks import await_callbacks, register_callback
from onecommit.domain.attempt import Attempt
from onecommit.domain.callback import Callback, Resolution, Resolved
from onecommit.domain.identity import Epoch
from onecommit.errors import CallbackTimedOut, StaleAttempt
from onecommit.worker.insistence import Insistence
from onecommit.worker.jobs.follow_ups import FollowUps
from onecommit.worker.jobs.running import Interruption, Run, Running
from onecommit.worker.open_requests import OpenRequests

_SHORTEST_PAUSE = 0.2
"""Between two questions about the same callback that no notice has asked for."""


class Wait:
    """One handler that waits for one callback."""

    def __init__(self, callback: Callback, run: Run | None) -> None:
        self.callback = callback
        self.run = run
        self.resolved: asyncio.Future[Resolved] = asyncio.get_running_loop().create_future()


class Callbacks:
    """Waits for the callbacks of every handler of this process.

    A handler that waits holds no connection. Notices name the job whose callback was resolved; a poll
    for all that is awaited finds what they missed.
    """

    name = "callbacks"

    def __init__(
        self,
        insistence: Insistence,
        *,
        epoch: Epoch,
        running: Running,
        requests: OpenRequests,
        follow_ups: FollowUps,
        poll: Callable[[], float],
        most_parked: int,
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Starts the next round at once; set by whoever runs this loop."""
        self.interrupt: Callable[[Run, Interruption], None] = lambda *_: None
        """Asks a handler to stop; set by whoever runs handlers."""
        self._insistence = insistence
        self._epoch = epoch
        self._running = running
        self._requests = requests
        self._follow_ups = follow_ups
        self._poll = poll
        self._most_parked = most_parked
        self._waits: set[Wait] = set()
        self._news: set[int] = set()
        self._next_poll = 0.0
        self._parked = 0
        self._closed = False
        self._loop = asyncio.get_running_loop()

    async def register(self, attempt: Attempt, *, timeout_us: int, name: str | None) -> Callback:
        """Register a callback; the attempt is a lease from then on."""
        call = register_callback(
            attempt, callback_id=str(uuid4()), name=name, timeout_us=timeout_us, epoch=self._epoch
        )
        callback = await self._follow_ups.register(
            attempt, call, self._insistence, named=name is not None, epoch=self._epoch
        )
        if self._running.find(attempt.job_id, attempt.run_lease) is not None:
            self._requests.leased(attempt)
        return callback

    async def wait(self, callback: Callback, *, keep_slot: bool = False) -> Any:
        """The payload that the callback was resumed with."""
        await asyncio.sleep(0)  # a handler that has not waited yet gets its run now
        wait = Wait(callback, self._running.find(callback.job_id, callback.run_lease))
        if wait.run is not None:
            await self._follow_ups.begin_wait(
                wait.run.attempt, callback, self._insistence, epoch=self._epoch
            )
        resolved = await self._resolution_of(wait, keep_slot=keep_slot)
        return await self._conclude(wait, resolved)

    def notified(self, job_id: int) -> None:
        """A notice says that a callback of the job was resolved."""
        if any(wait.callback.job_id == job_id for wait in self._waits):
            self._news.add(job_id)
            self.wake()

    def close(self) -> None:
        """Interrupt every handler that waits now or later: the job goes on in another worker."""
        self._closed = True
        for run in {wait.run for wait in self._waits if wait.run is not None}:
            self.interrupt(run, Interruption.SHUTDOWN)

    async def run_once(self) -> float | None:
        """Ask for what may be resolved; return the seconds until the next question."""
        asked = self._due()
        if asked:
            await self._ask(asked)
        if not self._waits:
            return None
        return max(0.0, self._next_poll - self._loop.time())

    async def _resolution_of(self, wait: Wait, *, keep_slot: bool) -> Resolved:
        """How the callback was resolved; until then the slot is free for others."""
        run, future = wait.run, wait.resolved
        if run is not None and run.interruption is not None:
            raise asyncio.CancelledError
        self._waits.add(wait)
        if run is not None:
            run.waits.add(future)  # type: ignore[arg-type]  # it is only ever cancelled there
        try:
            await self._ask([wait])
            if future.done():
                return future.result()
            if self._closed and run is not None:
                self.interrupt(run, Interruption.SHUTDOWN)
            with _Parking(run, free_slot=not keep_slot and self._parked < self._most_parked):
                self._parked += 1
                try:
                    self.wake()
                    return await future
                finally:
                    self._parked -= 1
        finally:
            self._waits.discard(wait)
            if run is not None:
                run.waits.discard(future)

    async def _conclude(self, wait: Wait, resolved: Resolved) -> Any:
        run = wait.run
        if run is not None and run.station is not None:
            await run.station.take_slot_back(run)
        match resolved.resolution:
            case Resolution.RESUMED:
                return None if resolved.payload is None else msgspec.json.decode(resolved.payload)
            case Resolution.TIMED_OUT:
                raise CallbackTimedOut("nobody resolved the callback before its timeout")
            case Resolution.FOREIGN:
                raise StaleAttempt("the attempt that registered the callback is over")
            case _:
                await self._stop(run)
        return None

    async def _stop(self, run: Run | None) -> None:
        """The outside has ended the attempt: stop its handler."""
        if run is not None:
            self.interrupt(run, Interruption.CANCELLED)
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    def _due(self) -> list[Wait]:
        now = self._loop.time()
        news, self._news = self._news, set()
        if now >= self._next_poll:
            self._next_poll = now + max(_SHORTEST_PAUSE, min(self._poll(), self._soonest_timeout()))
            return list(self._waits)
        # A wait that has just begun may time out before the next poll.
        self._next_poll = min(self._next_poll, now + max(_SHORTEST_PAUSE, self._soonest_timeout()))
        return [wait for wait in self._waits if wait.callback.job_id in news]

    def _soonest_timeout(self) -> float:
        """Seconds until a timeout by our clock; whether it has come is for the database to say."""
        if not self._waits:
            return float("inf")
        soonest = min(wait.callback.timeout_at for wait in self._waits)
        return (soonest - datetime.now(UTC)).total_seconds()

    async def _ask(self, waits: list[Wait]) -> None:
        call = await_callbacks([wait.callback for wait in waits], epoch=self._epoch)
        answers = {each.callback_id: each for each in await self._insistence.run(call)}
        for wait in waits:
            resolved = answers.get(wait.callback.id)
            if resolved is not None and not wait.resolved.done():
                wait.resolved.set_result(resolved)


class _Parking:
    """A handler that waits, as its station sees it."""

    def __init__(self, run: Run | None, *, free_slot: bool) -> None:
        self._run = run
        self._free_slot = free_slot
        self._station = None if run is None else run.station

    def __enter__(self) -> None:
        if self._run is not None and self._station is not None:
            self._station.park(self._run, free_slot=self._free_slot)

    def __exit__(self, *_: object) -> None:
        if self._run is not None and self._station is not None:
            self._station.unpark(self._run)
