"""Enqueueing of one kind of job by many tasks at once: those that would wait share a transaction."""

import asyncio
import contextvars
from dataclasses import dataclass

from onecommit.app.enqueue_plan import EnqueuePlan
from onecommit.domain.job import Enqueued
from onecommit.errors import InvalidArgument
from onecommit.store.async_store import AsyncStore

_CALLS = 4
"""Calls under way before further jobs wait for one of them to end."""
_MOST_JOBS = 1_000
_MOST_CHARACTERS = 1_000_000
"""A shared call takes no more than this many jobs, and no further one once their arguments are this long."""


class Gathering:
    """Sends a job at once while few calls are under way; those that come meanwhile go together in the next.

    Each caller goes on when its own job is committed. What the store refuses for the arguments of one
    job is sent again singly, so nobody is told of a mistake that somebody else made.
    """

    def __init__(self, plan: EnqueuePlan, store: AsyncStore) -> None:
        self.store = store
        self._plan = plan
        self._calls = 0
        self._waiting: list[_Waiting] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def enqueue(self, args: str) -> Enqueued:
        """Enqueue one job. `args`: JSON, as the plan encodes it."""
        if self._calls >= _CALLS:
            waiting = _Waiting(args, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            return await waiting.answer
        self._calls += 1
        try:
            return await self._send(args)
        finally:
            self._end_call()

    def _end_call(self) -> None:
        self._calls -= 1
        together = self._take()
        if together:
            self._calls += 1
            # A context of its own: what the callers have set is theirs.
            task = asyncio.create_task(
                self._send_together(together),
                name="onecommit:enqueue",
                context=contextvars.Context(),
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _take(self) -> "list[_Waiting]":
        """Those that go now, in the order in which they came; who has given up is left out."""
        waiting = [one for one in self._waiting if not one.answer.done()]
        count = characters = 0
        while count < min(len(waiting), _MOST_JOBS) and characters < _MOST_CHARACTERS:
            characters += len(waiting[count].args)
            count += 1
        self._waiting = waiting[count:]
        return waiting[:count]

    async def _send_together(self, together: "list[_Waiting]") -> None:
        try:
            if len(together) == 1:
                await self._send_each(together)
            else:
                await self._send_all(together)
        except asyncio.CancelledError:
            for one in together:
                one.answer.cancel()
            raise
        finally:
            self._end_call()

    async def _send_all(self, together: "list[_Waiting]") -> None:
        texts = [one.args for one in together]
        try:
            jobs = await self.store.run(self._plan.together(texts, epoch=self.store.epoch))
        except InvalidArgument:
            await self._send_each(together)
        except Exception as error:  # noqa: BLE001 - each caller deals with it
            for one in together:
                one.fail(error)
        else:
            for one, job in zip(together, jobs, strict=True):
                one.tell(job)

    async def _send_each(self, waiting: "list[_Waiting]") -> None:
        for one in waiting:
            try:
                job = await self._send(one.args)
            except Exception as error:  # noqa: BLE001 - its caller deals with it
                one.fail(error)
            else:
                one.tell(job)

    async def _send(self, args: str) -> Enqueued:
        return await self.store.run(self._plan.plain(args, epoch=self.store.epoch))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The arguments of a job, and who waits for its id; the caller may have given up meanwhile."""

    args: str
    answer: "asyncio.Future[Enqueued]"

    def tell(self, job: Enqueued) -> None:
        if not self.answer.done():
            self.answer.set_result(job)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
