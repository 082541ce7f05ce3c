"""This process as the store knows it: a registered worker that may be declared dead and register anew."""

import asyncio

from onecommit.calls.workers import register_worker, retire_worker
from onecommit.domain.identity import Epoch, WorkerId
from onecommit.domain.worker import WorkerInfo
from onecommit.worker.insistence import Insistence


class Incarnation:
    """The current registration. Whoever is told OC008 reports it here; one of them registers anew."""

    def __init__(
        self, insistence: Insistence, *, name: str, info: WorkerInfo, epoch: Epoch
    ) -> None:
        self.epoch = epoch
        self._insistence = insistence
        self._name = name
        self._info = info
        self._id = WorkerId(0)
        self._alive = asyncio.Event()

    @property
    def worker(self) -> WorkerId:
        """The number under which this process claims; 0 before the first registration."""
        return self._id

    @property
    def is_alive(self) -> bool:
        """Whether the current incarnation was not declared dead, as far as we know."""
        return self._alive.is_set()

    async def register(self) -> WorkerId:
        """Begin a new incarnation."""
        call = register_worker(self._name, self._info, epoch=self.epoch)
        self._id = await self._insistence.run(call)
        self._alive.set()
        return self._id

    async def alive(self) -> WorkerId:
        """The current number, as soon as there is one that was not declared dead."""
        await self._alive.wait()
        return self._id

    def is_current(self, worker: WorkerId) -> bool:
        """Whether this incarnation is the present one, as far as we know."""
        return worker == self._id and self._alive.is_set()

    def mark_dead(self, worker: WorkerId) -> bool:
        """Take note that the store ended this incarnation; false if that is known already."""
        if not self.is_current(worker):
            return False
        self._alive.clear()
        return True

    async def retire(self) -> None:
        """End the current incarnation: what it still holds is rescued at the next rescue."""
        if self._alive.is_set():
            self._alive.clear()
            await self._insistence.run(retire_worker(self._id, epoch=self.epoch))
