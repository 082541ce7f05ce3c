# Generated from async_callbacks.py by tools/generate_sync.py: edit that file, then `make sync`.
"""Resolving callbacks from outside of their handlers."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from onecommit.app.registration import Registry
from onecommit.app.stores import Stores
from onecommit.app.sync_follow_ups import SyncClosedJobs
from onecommit.calls import callbacks as calls
from onecommit.calls.call import Call
from onecommit.calls.views import list_callbacks
from onecommit.domain.arguments import checked_text
from onecommit.domain.callback import CallbackAnswer, CallbackView, checked_callback_id
from onecommit.domain.follow_up import Transition
from onecommit.domain.identity import Epoch
from onecommit.domain.payload import encode_result
from onecommit.domain.times import microseconds
from onecommit.drivers.driver import SyncDriver
from onecommit.store.sync_store import SyncStoreTransaction
from onecommit.telemetry.events import log_event

T = TypeVar("T")


class SyncCallbacks:
    """Resolves callbacks on a connection of the App, or in a caller's transaction.

    Each but `list` answers whether the resolution was accepted. If it was not, it changed nothing.
    """

    def __init__(
        self, stores: Stores, registry: Registry, *, driver: SyncDriver | None = None
    ) -> None:
        self._stores = stores
        self._registry = registry
        self._driver = driver

    def list(
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
        return self._run(call)

    def resume(self, callback_id: str | UUID, payload: Any = None) -> CallbackAnswer:
        """Let the handler go on with the payload, a JSON value; kept if it does not wait yet.

        Raises:
            InvalidArgument: The payload cannot be stored, or the id is not a UUID.
        """
        text = encode_result(payload, what="payload")
        call = calls.resume_external
        epoch = self._epoch()
        return self._run(call(checked_callback_id(callback_id), payload=text, epoch=epoch))

    def complete(self, callback_id: str | UUID, result: Any = None) -> CallbackAnswer:
        """Complete the job with this result; its handler is stopped."""
        text = encode_result(result, what="result")
        callback = checked_callback_id(callback_id)
        epoch = self._epoch()
        call = calls.complete_external(callback, result=text, epoch=epoch)
        return self._end(callback, call, epoch=epoch)

    def fail(self, callback_id: str | UUID, *, reason: str) -> CallbackAnswer:
        """Send the job to the dead letters with code `callback_failed`; its handler is stopped."""
        callback = checked_callback_id(callback_id)
        reason = checked_text(reason, field="reason")
        epoch = self._epoch()
        call = calls.fail_external(callback, reason=reason, epoch=epoch)
        return self._end(callback, call, epoch=epoch)

    def retry(
        self, callback_id: str | UUID, *, reason: str, delay: timedelta = timedelta(0)
    ) -> CallbackAnswer:
        """End the attempt as failed; it is tried again after the delay while attempts are left."""
        callback = checked_callback_id(callback_id)
        delay_us = microseconds(delay, field="delay") or 0
        reason = checked_text(reason, field="reason")
        epoch = self._epoch()
        call = calls.retry_external(callback, delay_us=delay_us, reason=reason, epoch=epoch)
        return self._end(callback, call, epoch=epoch)

    def _end(self, callback: str, call: Call[CallbackAnswer], *, epoch: Epoch) -> CallbackAnswer:
        """Run a call that may end the job's attempt, with what follows."""
        if not self._registry.follow_ups.kinds:
            return self._run(call)

        def work(
            transaction: SyncStoreTransaction | SyncDriver,
        ) -> tuple[CallbackAnswer, SyncClosedJobs]:
            answer = transaction.run(call)
            closed = SyncClosedJobs(
                transaction, registry=self._registry, again=Transition.RETRIED, epoch=epoch
            )
            if answer is CallbackAnswer.ACCEPTED:
                closed.follow_callback(callback)
            return answer, closed

        if self._driver is not None:
            answer, closed = work(self._driver)
        else:
            answer, closed = (self._stores.sync_store()).transact(work)
        for event in closed.events:
            log_event(event)
        return answer

    def _epoch(self) -> Epoch:
        if self._driver is not None:
            return self._stores.sync_epoch(self._driver)
        return (self._stores.sync_store()).epoch

    def _run(self, call: Call[T]) -> T:
        if self._driver is not None:
            return self._driver.run(call)
        return (self._stores.sync_store()).run(call)
