"""The worker: started in order, told what happens, stopped in order."""

import asyncio
import os
import socket
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from onecommit.app.app import App
from onecommit.calls.maintenance import adopt_lanes
from onecommit.calls.workers import cancellations
from onecommit.domain.closing import Cancellation
from onecommit.domain.identity import WorkerId
from onecommit.domain.settings import StoreSettings
from onecommit.domain.worker import WorkerInfo
from onecommit.errors import EpochFenced, SchemaError, StoreMismatch, UsageError
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import (
    AttemptEnded,
    Emit,
    LoopFailed,
    MetricsServed,
    WorkerFenced,
    WorkerIdentityLost,
    WorkerReplaced,
    WorkerStarted,
    log_event,
)
from onecommit.telemetry.tracebacks import frames_of
from onecommit.version import __version__
from onecommit.worker.admission import (
    check_connections,
    needs_of,
    report_disabled,
    store_connections,
)
from onecommit.worker.draining import Shutdown, run_until_empty
from onecommit.worker.health import Health
from onecommit.worker.jobs.kind import Kind, kinds_of
from onecommit.worker.jobs.running import Interruption
from onecommit.worker.machinery import Machinery, Reactions
from onecommit.worker.notices import NoticeRouter
from onecommit.worker.observation import Observation
from onecommit.worker.settings import WorkerSettings
from onecommit.worker.threads import HandlerThreads

if TYPE_CHECKING:
    from onecommit.worker.monitor import Monitor

_FATAL = (EpochFenced, SchemaError, StoreMismatch)
"""After these the process must not touch the store any more."""


class Worker:
    """Runs an App's jobs in this process and event loop.

    ``async with app.worker(queues={"email": 20}) as worker`` starts it and drains it at the end.
    """

    def __init__(self, app: App, settings: WorkerSettings, *, emit: Emit = log_event) -> None:
        self.settings = settings
        self._app = app
        self._observation = Observation(app.observers, emit=emit)
        self._emit = self._observation.emit
        self._threads = HandlerThreads(limit=min(settings.threads, settings.concurrency))
        self._machinery: Machinery | None = None
        self._router = NoticeRouter(
            wake=self._wake,
            ask_lanes=lambda lane: self._spawn(self._find_lane(lane), name="lanes"),
            on_schedule=self._promote,
            on_cancellation=lambda: self._spawn(self._ask_cancellations(), name="cancellations"),
            on_callback=self._callback_resolved,
            on_work=self._look_for_work,
        )
        self._failure: BaseException | None = None
        self._stop_requested = asyncio.Event()
        self._hurry = asyncio.Event()
        self._shutdown: asyncio.Task[int] | None = None
        self._monitor: Monitor | None = None
        self.health = Health(settings, is_stopping=self._stop_requested.is_set)
        """Whether this worker lives and whether it works, for any thread."""

    async def start(self) -> Self:
        """Check the store, register and begin to claim.

        Raises:
            SchemaError: The schema is missing, too old or too new.
            EpochFenced: The epoch is not the active one, or there is none.
            StoreUnavailable: The server does not answer.
            UsageError: The connections would not suffice, see `WorkerSettings.shared_pool`; or the metrics
                cannot be served as `WorkerSettings.metrics_port` asks for.
        """
        if self._machinery is not None:
            raise UsageError("this worker was started before", remedy="Make another one.")
        kinds = kinds_of(self._app.registry, threads=self._threads)
        self._open_monitor(kinds)
        try:
            await self._start(kinds)
        except BaseException:
            await self._close_monitor()
            raise
        return self

    async def _start(self, kinds: Mapping[str, Kind]) -> None:
        settings = await asyncio.to_thread(lambda: self._app.settings)
        store = AsyncStore(self._store_settings(settings))
        try:
            await store.open()
            needs = needs_of(self.settings, self._caller_owned_queues())
            await check_connections(store, needs, emit=self._emit)
            machinery = self._machinery = self._assemble(store, kinds)
            if self._monitor is not None:
                self._monitor.attach(machinery)
            for queue in self.settings.queues:
                lanes = await store.run(adopt_lanes(queue, epoch=store.epoch))
                self._router.learn(queue, lanes)
            worker = await machinery.incarnation.register()
            await report_disabled(store, self._caller_owned_queues(), emit=self._emit)
        except BaseException:
            await store.close()
            raise
        self._observation.start()
        machinery.start()
        self.health.parts = machinery
        queues = " ".join(f"{queue}:{count}" for queue, count in self.settings.queues.items())
        self._emit(WorkerStarted(worker=worker, queues=queues))

    async def run(self) -> int:
        """Work until a stop is requested, drain, and return how many attempts had to be abandoned."""
        await self._stop_requested.wait()
        return await self.stop()

    def request_stop(self) -> None:
        """Begin to drain; the second request ends what runs at once. For signal handlers."""
        if self._stop_requested.is_set():
            self._hurry.set()
        self._stop_requested.set()

    async def stop_requested(self) -> None:
        """Return when somebody wants the worker to end, or the store has fenced it."""
        await self._stop_requested.wait()

    async def stop(self) -> int:
        """Drain within the budget and end; later calls wait for the first.

        Raises:
            EpochFenced: The epoch was rotated while the worker ran.
        """
        self._stop_requested.set()
        if self._machinery is None:
            return 0
        if self._shutdown is None:
            self._shutdown = asyncio.create_task(self._shut_down(self._machinery))
        abandoned = await asyncio.shield(self._shutdown)
        if self._failure is not None:
            raise self._failure
        return abandoned

    async def drain(self) -> None:
        """Return when the queues hold nothing that can run now; the worker goes on.

        Retries and snoozes that are due later, and producers that keep a transaction open, are not
        waited for.
        """
        if self._machinery is None:
            raise UsageError("this worker was not started")
        await run_until_empty(self._machinery)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- assembling

    def _caller_owned_queues(self) -> dict[str, int]:
        """The concurrency of those queues that caller-owned kinds go to."""
        homes = {definition.queue for definition in self._app.registry if definition.caller_owned}
        return {queue: count for queue, count in self.settings.queues.items() if queue in homes}

    def _store_settings(self, settings: StoreSettings) -> StoreSettings:
        timeout = timedelta(seconds=self.settings.operation_timeout)
        return replace(
            settings,
            max_connections=store_connections(self.settings),
            operation_timeout=min(settings.operation_timeout, timeout),
            connect_timeout=min(settings.connect_timeout, timeout),
            application_name=f"{settings.application_name} worker",
        )

    def _assemble(self, store: AsyncStore, kinds: Mapping[str, Kind]) -> Machinery:
        host = socket.gethostname()
        return Machinery(
            store,
            settings=self.settings,
            kinds=kinds,
            registry=self._app.registry,
            observed=self._app.observers.want(AttemptEnded),
            threads=self._threads,
            name=self.settings.name or f"{host}:{os.getpid()}",
            info=WorkerInfo(
                host=host,
                pid=os.getpid(),
                version=__version__,
                queues=tuple(self.settings.queues),
                work=tuple(
                    work.label
                    for work in self._app.registry.work.executable
                    if work.contract.name in self.settings.work
                ),
                connections=None
                if store.settings.transaction_pooler
                else needs_of(self.settings, self._caller_owned_queues()).most,
            ),
            reactions=Reactions(
                on_notice=self._router.route,
                on_cancelled=self._cancel,
                on_dead=self._replace,
                on_error=self._fail,
                is_fatal=lambda error: isinstance(error, _FATAL),
                emit=self._emit,
            ),
        )

    async def _shut_down(self, machinery: Machinery) -> int:
        shutdown = Shutdown(machinery, settings=self.settings, hurry=self._hurry, emit=self._emit)
        try:
            return await (shutdown.halt() if self._failure else shutdown.drain())
        finally:
            await self._observation.stop()
            await self._close_monitor()

    def _open_monitor(self, kinds: Mapping[str, Kind]) -> None:
        if self.settings.metrics_port is None:
            return
        # Here, because few of those who embed a worker want a server in it.
        from onecommit.worker.monitor import Monitor

        self._monitor = Monitor(
            self.settings,
            port=self.settings.metrics_port,
            registry=self._app.registry,
            health=self.health,
            on_error=lambda error: self._report(error, loop="metrics"),
        )
        self._monitor.measure(kinds)
        self._observation.pass_on_to(self._monitor.count)
        self._emit(MetricsServed(port=self._monitor.port))

    async def _close_monitor(self) -> None:
        if self._monitor is not None:
            await self._monitor.stop()

    # --- reacting

    def _fail(self, error: BaseException) -> None:
        """Something outside of any handler raised: end if the store refuses us, else go on."""
        if isinstance(error, _FATAL):
            if self._failure is None:
                self._failure = self.health.failure = error
                worker = self._machinery.incarnation.worker if self._machinery else 0
                self._emit(WorkerFenced(worker=worker, code=error.code))
            self._stop_requested.set()
            self._hurry.set()
            if self._shutdown is None and self._machinery is not None:
                self._shutdown = asyncio.create_task(self._shut_down(self._machinery))
            return
        self._report(error, loop="task")

    def _report(self, error: BaseException, *, loop: str) -> None:
        self._emit(
            LoopFailed(
                loop=loop,
                failure=type(error).__qualname__,
                frames=frames_of(error),
                pause_seconds=0.0,
            )
        )

    def _replace(self, dead: WorkerId) -> None:
        """The store has ended this incarnation: what it runs is lost, and it begins anew."""
        machinery = self._machinery
        if machinery is None or self._stop_requested.is_set():
            return
        if machinery.incarnation.mark_dead(dead):
            self._emit(WorkerIdentityLost(worker=dead))
            self._spawn(self._begin_anew(machinery, dead), name="register")

    async def _begin_anew(self, machinery: Machinery, dead: WorkerId) -> None:
        for station in machinery.stations.values():
            station.take_back()
        interrupted = machinery.executor.interrupt_all(Interruption.RESCUED)
        machinery.requests.forget()
        successor = await machinery.incarnation.register()
        self._emit(WorkerReplaced(worker=dead, successor=successor, cancelled=interrupted))

    def _wake(self, queue: str | None) -> None:
        if self._machinery is not None:
            self._machinery.wake(queue)

    def _promote(self) -> None:
        if self._machinery is not None:
            self._machinery.promote()

    def _look_for_work(self) -> None:
        if self._machinery is not None:
            self._machinery.work.wake()

    def _callback_resolved(self, job_id: int) -> None:
        if self._machinery is not None:
            self._machinery.callbacks.notified(job_id)

    def _cancel(self, cancelled: Sequence[Cancellation]) -> None:
        if self._machinery is not None:
            self._machinery.cancel(cancelled)

    async def _ask_cancellations(self) -> None:
        machinery = self._machinery
        if machinery is not None:
            epoch = machinery.incarnation.epoch
            cancelled = await machinery.insistence.run(cancellations(epoch=epoch))
            self._cancel(cancelled)

    async def _find_lane(self, lane: int) -> None:
        machinery = self._machinery
        if machinery is not None:
            for queue in self.settings.queues:
                call = adopt_lanes(queue, epoch=machinery.incarnation.epoch)
                lanes = await machinery.insistence.run(call)
                self._router.learn(queue, lanes)
            self._router.settle(lane)

    def _spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        if self._machinery is None or self._stop_requested.is_set():
            work.close()
        else:
            self._machinery.tasks.spawn(work, name=f"onecommit:{name}")
