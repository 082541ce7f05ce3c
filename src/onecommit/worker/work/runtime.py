"""The parts that run Work, as the worker starts and ends them."""

import asyncio
from collections.abc import Callable, Mapping

from onecommit.app.work_registry import WorkRegistry
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import Emit
from onecommit.worker.incarnation import Incarnation
from onecommit.worker.insistence import Insistence
from onecommit.worker.lifecycle import Lifecycle, Loop
from onecommit.worker.threads import HandlerThreads
from onecommit.worker.work.contracts import Contracts
from onecommit.worker.work.dispatcher import GATHER, WorkDispatcher
from onecommit.worker.work.invocations import Stop
from onecommit.worker.work.renewals import Renewals
from onecommit.worker.work.runner import WorkRunner


class WorkRuntime:
    """Runs the Work of one process; without a contract it makes no call at all."""

    def __init__(
        self,
        store: AsyncStore,
        *,
        registry: WorkRegistry,
        concurrency: Mapping[str, int],
        insistence: Insistence,
        incarnation: Incarnation,
        threads: HandlerThreads,
        lifecycle: Callable[[Loop], Lifecycle],
        poll: Callable[[], tuple[bool, float]],
        emit: Emit,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._contracts = Contracts(registry, concurrency)
        self._runner = WorkRunner(
            store,
            insistence=insistence,
            contracts=self._contracts,
            threads=threads,
            emit=emit,
            on_error=on_error,
        )
        self._dispatcher = WorkDispatcher(
            self._contracts,
            runner=self._runner,
            insistence=insistence,
            incarnation=incarnation,
            poll=poll,
            emit=emit,
            on_error=on_error,
        )
        self._looks = lifecycle(self._dispatcher)
        self._gathering = False
        self._runner.on_free = self._slot_is_free

    @property
    def runner(self) -> WorkRunner:
        """What runs the items."""
        return self._runner

    @property
    def contracts(self) -> Contracts:
        """What is run, and with how many slots."""
        return self._contracts

    @property
    def renewals(self) -> Renewals:
        """What the heartbeat's thread does beside its own."""
        return self._runner.renewals

    @property
    def running(self) -> int:
        """Items that are claimed here."""
        return len(self._runner.invocations)

    def start(self) -> None:
        """Begin to look for Work."""
        if self._contracts:
            self._looks.start()

    def wake(self) -> None:
        """Look now."""
        self._looks.wake()

    async def stop_claiming(self, *, timeout: float) -> None:
        """Claim no more; what was claimed and has not begun is released."""
        self._runner.draining.set()
        await self._looks.stop(timeout=timeout)
        await self._dispatcher.stop(timeout=timeout)

    async def wait(self, *, timeout: float | None = None) -> bool:
        """Wait until nothing runs; false after `timeout`."""
        return await self._runner.wait(timeout=timeout)

    def interrupt_all(self) -> None:
        """Cancel every executor."""
        self._runner.interrupt_all(Stop.SHUTDOWN)

    async def abandon(self, *, timeout: float) -> int:
        """Give up what still runs, and return how many that are."""
        return await self._runner.abandon(timeout=timeout)

    async def run_until_empty(self) -> int:
        """Return when nothing is due and nothing runs: how many items ended meanwhile."""
        before = self._runner.ended
        if self._contracts:
            empty: asyncio.Event = self._dispatcher.watch()
            self.wake()
            await empty.wait()
            await self._dispatcher.settle()
            await self.wait()
        return self._runner.ended - before

    def _slot_is_free(self) -> None:
        if self._dispatcher.full and not self._gathering:
            self._gathering = True
            asyncio.get_running_loop().call_later(GATHER, self._look)

    def _look(self) -> None:
        self._gathering = False
        self._looks.wake()
