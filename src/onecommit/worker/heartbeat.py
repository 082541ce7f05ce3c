"""Tells the store that this worker lives, from a thread that a blocked event loop cannot stop."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from onecommit.calls.workers import heartbeat_worker
from onecommit.domain.closing import Cancellation
from onecommit.domain.identity import WorkerId
from onecommit.domain.settings import StoreSettings
from onecommit.errors import StoreUnavailable, WorkerEnded
from onecommit.store.sync_store import SyncStore
from onecommit.telemetry.events import (
    Emit,
    HeartbeatStale,
    LoopBlocked,
    LoopResumed,
    Reconnected,
    Reconnecting,
)
from onecommit.telemetry.tracebacks import frames_of_thread
from onecommit.worker.incarnation import Incarnation
from onecommit.worker.open_requests import OpenRequests

_RETRY_SECONDS = 1.0


class Heartbeat:
    """A daemon thread with a connection of its own.

    It stops reporting when the event loop has not run for the rescue window: a worker that cannot
    finish anything must not keep its jobs from those who can. Everything that it learns is handed to
    the event loop.
    """

    def __init__(
        self,
        settings: StoreSettings,
        *,
        incarnation: Incarnation,
        requests: OpenRequests,
        interval: float,
        window: float,
        blame: Callable[[], str | None],
        on_cancelled: Callable[[Sequence[Cancellation]], None],
        on_dead: Callable[[WorkerId], None],
        on_error: Callable[[BaseException], None],
        renew: Callable[[SyncStore], float],
        emit: Emit,
    ) -> None:
        self.failures = 0
        """Heartbeats in a row that the database did not answer."""
        patience = timedelta(seconds=window / 3)
        self._store = SyncStore(
            replace(
                settings,
                max_connections=1,
                operation_timeout=min(settings.operation_timeout, patience),
                connect_timeout=min(settings.connect_timeout, patience),
                application_name=f"{settings.application_name} heartbeat",
            )
        )
        self._incarnation = incarnation
        self._requests = requests
        self._interval = interval
        self._window = window
        self._blame = blame
        self._on_cancelled = on_cancelled
        self._on_dead = on_dead
        self._on_error = on_error
        self._renew = renew
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._ticked = time.monotonic()
        self._answered_at = time.monotonic()
        self._stale = False
        self._blocked = False
        self._due = 0.0
        self._stopping = False
        self._poked = threading.Event()
        self._thread = threading.Thread(target=self._work, name="onecommit-heartbeat", daemon=True)

    @property
    def age(self) -> float:
        """Seconds since the store took note of this worker, the last time as far as we know."""
        return time.monotonic() - self._answered_at

    @property
    def loop_silence(self) -> float:
        """Seconds since the event loop is known to have run."""
        return time.monotonic() - self._ticked

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin; the registration just before counts as the first heartbeat."""
        self._answered_at = self._ticked = time.monotonic()
        self._thread.start()

    async def stop(self) -> None:
        """End; a heartbeat that is on its way may still arrive."""
        self._end()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, 2.0)

    def poke(self) -> None:
        """Leases are to be renewed earlier than this thread may expect; callable from any thread."""
        self._poked.set()

    def _work(self) -> None:
        while not self._stopping:
            self._poked.clear()
            try:
                pause = self._round()
            except Exception as error:  # noqa: BLE001 - handed over: the loop decides what it means
                self._hand_over(self._on_error, error)
                self._due = time.monotonic() + self._interval
                pause = self._interval
            self._check_age()
            if not self._stopping:
                self._poked.wait(pause)
        self._store.close()

    def _round(self) -> float:
        """Report if it is time, renew what is due; return the seconds until the next round."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._beat()
        renewed = self._renew(self._store)
        return min(max(self._due - time.monotonic(), 0.0), renewed)

    def _end(self) -> None:
        self._stopping = True
        self._poked.set()

    def _beat(self) -> float:
        """Report once, unless the loop is blocked; return the seconds until the next time."""
        self._hand_over(self._tick)
        if self._is_blocked():
            return min(self._interval, _RETRY_SECONDS)
        worker = self._incarnation.worker
        call = heartbeat_worker(
            worker, oldest_request=self._requests.oldest, epoch=self._incarnation.epoch
        )
        try:
            cancelled = self._store.run(call)
        except StoreUnavailable as error:
            return self._unavailable(error)
        except WorkerEnded:
            self._hand_over(self._on_dead, worker)
            return self._interval
        self._answered()
        if cancelled:
            self._hand_over(self._on_cancelled, cancelled)
        return self._interval

    def _tick(self) -> None:
        self._ticked = time.monotonic()

    def _is_blocked(self) -> bool:
        silent = self.loop_silence
        blocked = silent > self._window
        if blocked and not self._blocked:
            self._emit(
                LoopBlocked(
                    seconds=round(silent, 1),
                    kind=self._blame(),
                    frames=frames_of_thread(self._loop_thread),
                )
            )
        elif self._blocked and not blocked:
            self._emit(LoopResumed())
        self._blocked = blocked
        return blocked

    def _unavailable(self, error: StoreUnavailable) -> float:
        self.failures += 1
        pause = min(_RETRY_SECONDS, self._interval)
        self._emit(
            Reconnecting(
                operation="heartbeat_worker",
                failure=error.message,
                attempt=self.failures,
                pause_seconds=pause,
            )
        )
        return pause

    def _answered(self) -> None:
        self._answered_at = time.monotonic()
        self._stale = False
        if self.failures:
            self._emit(Reconnected(operation="heartbeat_worker", attempts=self.failures))
            self.failures = 0

    def _check_age(self) -> None:
        """Say once that the others may take this worker for dead, whatever keeps it silent."""
        if not self._stale and self.age > self._window:
            self._stale = True
            self._emit(
                HeartbeatStale(worker=self._incarnation.worker, silent_seconds=round(self.age, 1))
            )

    def _hand_over(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed, and with it everything that we report for
            self._end()
