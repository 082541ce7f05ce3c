"""The parts of a worker, put together once the store is known."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from onecommit.app.registration import Registry
from onecommit.domain.closing import Cancellation
from onecommit.domain.identity import WorkerId
from onecommit.domain.worker import WorkerInfo
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import Emit
from onecommit.worker.heartbeat import Heartbeat
from onecommit.worker.incarnation import Incarnation
from onecommit.worker.insistence import Insistence
from onecommit.worker.jobs.callbacks import Callbacks
from onecommit.worker.jobs.claim_size import ClaimSize
from onecommit.worker.jobs.completer import Completer
from onecommit.worker.jobs.dispatcher import Dispatcher
from onecommit.worker.jobs.executor import Executor
from onecommit.worker.jobs.follow_ups import FollowUps
from onecommit.worker.jobs.kind import Kind
from onecommit.worker.jobs.port import RuntimePort
from onecommit.worker.jobs.progress import Progress
from onecommit.worker.jobs.reconciler import Reconciler
from onecommit.worker.jobs.rescuer import Rescuer
from onecommit.worker.jobs.running import Running
from onecommit.worker.jobs.station import Station
from onecommit.worker.lifecycle import Lifecycle, Loop
from onecommit.worker.maintenance import Maintenance
from onecommit.worker.notifier import Notifier
from onecommit.worker.observation import report_end
from onecommit.worker.open_requests import OpenRequests
from onecommit.worker.settings import WorkerSettings
from onecommit.worker.tasks import Tasks
from onecommit.worker.threads import HandlerThreads
from onecommit.worker.work import WorkRuntime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactions:
    """What the worker does about what its parts report."""

    on_notice: Callable[[str], None]
    on_cancelled: Callable[[Sequence[Cancellation]], None]
    on_dead: Callable[[WorkerId], None]
    on_error: Callable[[BaseException], None]
    is_fatal: Callable[[BaseException], bool]
    emit: Emit


class Machinery:
    """Builds every part; starting and stopping them in order is the worker's business."""

    def __init__(
        self,
        store: AsyncStore,
        *,
        settings: WorkerSettings,
        kinds: Mapping[str, Kind],
        registry: Registry,
        observed: bool,
        threads: HandlerThreads,
        info: WorkerInfo,
        name: str,
        reactions: Reactions,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.store = store
        self.threads = threads
        self._settings = settings
        self._reactions = reactions
        emit, epoch = reactions.emit, store.epoch
        self.insistence = Insistence(store, emit=emit)
        self.incarnation = Incarnation(self.insistence, name=name, info=info, epoch=epoch)
        self.requests = OpenRequests()
        self.running = Running()
        self.progress = Progress(self.insistence, epoch=epoch, on_error=reactions.on_error)
        self.tasks = Tasks(on_error=reactions.on_error)
        follow_ups = FollowUps(kinds, registry=registry, emit=emit)
        self.completer = Completer(
            self.insistence,
            epoch=epoch,
            requests=self.requests,
            emit=emit,
            size=settings.flush_size,
            delay=settings.flush_delay,
        )
        self.reconciler = Reconciler(
            store,
            epoch=epoch,
            requests=self.requests,
            follow_ups=follow_ups,
            budget=settings.reconcile_budget,
            emit=emit,
            on_error=reactions.on_error,
        )
        self.callbacks = Callbacks(
            self.insistence,
            epoch=epoch,
            running=self.running,
            requests=self.requests,
            follow_ups=follow_ups,
            poll=lambda: self._poll()[1],
            most_parked=settings.waiting_limit,
        )
        self.executor = Executor(
            running=self.running,
            completer=self.completer,
            reconciler=self.reconciler,
            follow_ups=follow_ups,
            progress=self.progress,
            requests=self.requests,
            settings=settings,
            emit=emit,
        )
        self.completer.on_refused = self.executor.record_without
        if observed:
            self.completer.on_ended = self.reconciler.on_ended = partial(report_end, emit=emit)
        self.notifier = Notifier(
            store,
            emit=emit,
            on_notice=reactions.on_notice,
            poll=settings.silent_poll_interval,
        )
        self.maintenance = Maintenance(
            store,
            incarnation=self.incarnation,
            rescuer=Rescuer(store, epoch=epoch, registry=registry, observed=observed, emit=emit),
            rescue_window=settings.rescue_window,
            listening=lambda: self.notifier.listening,
        )
        self.work = WorkRuntime(
            store,
            registry=registry.work,
            concurrency=settings.work,
            insistence=self.insistence,
            incarnation=self.incarnation,
            threads=threads,
            lifecycle=self._lifecycle,
            poll=lambda: (self.notifier.listening, settings.silent_poll_interval),
            emit=emit,
            on_error=reactions.on_error,
        )
        self.heartbeat = self._heartbeat()
        self.work.renewals.poke = self.heartbeat.poke
        self.loops = {
            loop.name: self._lifecycle(loop)
            for loop in (
                self.completer,
                self.progress,
                self.executor,
                self.callbacks,
                self.notifier,
                self.maintenance,
            )
        }
        self.completer.wake = self.loops[self.completer.name].wake
        self.progress.wake = self.loops[self.progress.name].wake
        self.executor.wake = self.loops[self.executor.name].wake
        self.callbacks.wake = self.loops[self.callbacks.name].wake
        self.callbacks.interrupt = self.executor.interrupt
        self.stations: dict[str, Station] = {}
        self.dispatchers: dict[str, Dispatcher] = {}
        self.claims: dict[str, Lifecycle] = {}
        for queue, concurrency in settings.queues.items():
            self._add_queue(queue, concurrency, kinds)

    @property
    def ends(self) -> tuple[int, int]:
        """How many attempts have ended, and how many ends were recorded, since the start."""
        ended = sum(station.ended for station in self.stations.values())
        return ended, self.completer.ended.total()

    def start(self) -> None:
        """Begin to work."""
        self.heartbeat.start()
        for loop in (*self.loops.values(), *self.claims.values()):
            loop.start()
        self.work.start()

    def wake(self, queue: str | None) -> None:
        """Claim now: from one queue, or from all."""
        for name in self.dispatchers if queue is None else (queue,):
            if self.dispatchers[name].notified():
                self.claims[name].wake()

    def promote(self) -> None:
        """Something falls due soon."""
        self.maintenance.expect_promotion()
        self.loops[self.maintenance.name].wake()

    def cancel(self, cancelled: Sequence[Cancellation]) -> None:
        """Stop, or do not start, the attempts that the store has closed."""
        self.executor.cancel(cancelled)
        closed = set(cancelled)
        for station in self.stations.values():
            self.requests.closed(station.drop(closed))

    def _add_queue(self, queue: str, concurrency: int, kinds: Mapping[str, Kind]) -> None:
        station = Station(
            queue,
            concurrency=concurrency,
            kinds=kinds,
            executor=self.executor,
            completer=self.completer,
            port=RuntimePort(
                schema=self.store.settings.schema,
                running=self.running,
                progress=self.progress,
                callbacks=self.callbacks,
            ),
            on_error=self._reactions.on_error,
        )
        dispatcher = Dispatcher(
            station,
            size=ClaimSize(
                concurrency=concurrency,
                horizon=self._settings.prefetch_horizon,
                largest=self._settings.largest_claim,
            ),
            insistence=self.insistence,
            incarnation=self.incarnation,
            requests=self.requests,
            poll=self._poll,
            on_dead=self._reactions.on_dead,
        )
        claims = self._lifecycle(dispatcher)
        station.on_low = lambda: claims.wake() if dispatcher.hungry() else None
        self.stations[queue] = station
        self.dispatchers[queue] = dispatcher
        self.claims[queue] = claims

    def _lifecycle(self, loop: Loop) -> Lifecycle:
        return Lifecycle(
            loop,
            emit=self._reactions.emit,
            is_fatal=self._reactions.is_fatal,
            on_fatal=self._reactions.on_error,
        )

    def _poll(self) -> tuple[bool, float]:
        """Whether notices arrive, and the pause between safety polls of one queue."""
        share = max(1.0, len(self._settings.queues) / 2)
        if self.notifier.listening:
            return True, self._settings.poll_interval * share
        return False, self._settings.silent_poll_interval * share

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            self.store.settings,
            incarnation=self.incarnation,
            requests=self.requests,
            interval=self._settings.heartbeat_interval,
            window=self._settings.rescue_window,
            blame=self._blame,
            on_cancelled=self._reactions.on_cancelled,
            on_dead=self._reactions.on_dead,
            on_error=self._reactions.on_error,
            renew=self.work.renewals.run,
            emit=self._reactions.emit,
        )

    def _blame(self) -> str | None:
        """The kind whose handler holds the event loop, as far as can be seen from another thread."""
        task = asyncio.current_task(self._loop)
        run = self.running.find_task(task)
        if run is not None:
            return run.kind.name
        for station in self.stations.values():
            if task is not None and station.is_served_by(task) and station.current is not None:
                return station.current.kind
        return None
