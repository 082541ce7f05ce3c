"""Resolving callbacks from outside of their handlers."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from onecommit.app.async_follow_ups import AsyncClosedJobs
from onecommit.app.registration import Registry
from onecommit.app.stores import Stores
from onecommit.calls import callbacks as calls
from onecommit.calls.call import Call
from onecommit.calls.views import list_callbacks
from onecommit.domain.arguments import checked_text
from onecommit.domain.callback import CallbackAnswer, CallbackView, checked_callback_id
from onecommit.domain.follow_up import Transition
from onecommit.domain.identity import Epoch
from onecommit.domain.payload import encode_result
from onecommit.domain.times import microseconds
from onecommit.drivers.driver import AsyncDriver
from onecommit.store.async_store import AsyncStoreTransaction
from onecommit.telemetry.events import log_event

T = TypeVar("T")


class AsyncCallbacks:
    """Resolves callbacks on a connection of the App, or in a caller's transaction.

    Each but `list` answers whether the resolution was accepted. If it was not, it changed nothing.
    """

    def __init__(
        self, stores: Stores, registry: Registry, *, driver: AsyncDriver | None = None
    ) -> None:
        self._stores = stores
        self._registry = registry
        self._driver = driver

    async def list(
        self,
        *,
        job_id: int | None = None,
        queue: str | None = None,
        kind: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> Sequence[CallbackView]:
        """What waits for an answer, without the callbacks' ids: whoever knows one may resolve it.

        Args:
            job_id: Only of this job.
            queue: Only of this queue.
            kind: Only of this kind.
            limit: Of at most so many jobs, the newest first; 1 to 1000.
            before: Only of jobs below this id.
        """
        call = list_callbacks(job_id=job_id, queue=queue, kind=kind, limit=limit, before=before)
        return await self._run(call)

    async def resume(self, callback_id: str | UUID, payload: Any = None) -> CallbackAnswer:
        """Let the handler go on with the payload, a JSON value; kept if it does not wait yet.

        Raises:
            InvalidArgument: The payload cannot be stored, or the id is not a UUID.
        """
        text = encode_result(payload, what="payload")
        call = calls.resume_external
        epoch = await self._epoch()
        return await self._run(call(checked_callback_id(callback_id), payload=text, epoch=epoch))

    async def complete(self, callback_id: str | UUID, result: Any = None) -> CallbackAnswer:
        """Complete the job with this result; its handler is stopped."""
        text = encode_result(result, what="result")
        callback = checked_callback_id(callback_id)
        epoch = await self._epoch()
        call = calls.complete_external(callback, result=text, epoch=epoch)
        return await self._end(callback, call, epoch=epoch)

    async def fail(self, callback_id: str | UUID, *, reason: str) -> CallbackAnswer:
        """Send the job to the dead letters with code `callback_failed`; its handler is stopped."""
        callback = checked_callback_id(callback_id)
        reason = checked_text(reason, field="reason")
        epoch = await self._epoch()
        call = calls.fail_external(callback, reason=reason, epoch=epoch)
        return await self._end(callback, call, epoch=epoch)

    async def retry(
        self, callback_id: str | UUID, *, reason: str, delay: timedelta = timedelta(0)
    ) -> CallbackAnswer:
        """End the attempt as failed; it is tried again after the delay while attempts are left."""
        callback = checked_callback_id(callback_id)
        delay_us = microseconds(delay, field="delay") or 0
        reason = checked_text(reason, field="reason")
        epoch = await self._epoch()
        call = calls.retry_external(callback, delay_us=delay_us, reason=reason, epoch=epoch)
        return await self._end(callback, call, epoch=epoch)

    async def _end(
        self, callback: str, call: Call[CallbackAnswer], *, epoch: Epoch
    ) -> CallbackAnswer:
        """Run a call that may end the job's attempt, with what follows."""
        if not self._registry.follow_ups.kinds:
            return await self._run(call)

        async def work(
            transaction: AsyncStoreTransaction | AsyncDriver,
        ) -> tuple[CallbackAnswer, AsyncClosedJobs]:
            answer = await transaction.run(call)
            closed = AsyncClosedJobs(
                transaction, registry=self._registry, again=Transition.RETRIED, epoch=epoch
            )
            if answer is CallbackAnswer.ACCEPTED:
                await closed.follow_callback(callback)
            return answer, closed

        if self._driver is not None:
            answer, closed = await work(self._driver)
        else:
            answer, closed = await (await self._stores.async_store()).transact(work)
        for event in closed.events:
            log_event(event)
        return answer

    async def _epoch(self) -> Epoch:
        if self._driver is not None:
            return await self._stores.async_epoch(self._driver)
        return (await self._stores.async_store()).epoch

    async def _run(self, call: Call[T]) -> T:
        if self._driver is not None:
            return await self._driver.run(call)
        return await (await self._stores.async_store()).run(call)
