"""Runs one claimed item of Work after another: permit, admission, provider, record."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from onecommit.calls.work_attempts import (
    acquire_permit,
    admit_invocation,
    complete_work,
    suspend_contract,
)
from onecommit.domain.work import WorkFence
from onecommit.domain.work_attempt import (
    ClaimedWork,
    Permission,
    Renewal,
    RenewalOutcome,
    WorkCompletion,
    WorkEnd,
)
from onecommit.errors import EpochFenced, InvalidWork, StoreUnavailable
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import (
    Emit,
    WorkAttemptEnded,
    WorkAttemptFailed,
    WorkAttemptRefused,
    WorkCompletionFenced,
    WorkNames,
    WorkSuspended,
)
from onecommit.telemetry.tracebacks import frames_of
from onecommit.worker.insistence import Insistence
from onecommit.worker.tasks import Tasks
from onecommit.worker.threads import HandlerThreads
from onecommit.worker.work import ending
from onecommit.worker.work.apart import Raised, Returned
from onecommit.worker.work.calling import Calling
from onecommit.worker.work.contracts import AnyWork, Contracts
from onecommit.worker.work.invocations import Invocation, Invocations, Stop
from onecommit.worker.work.renewals import Renewals

_MARGIN = 0.1
"""The part of a lease that is kept for recording how an attempt ended."""


class WorkRunner:
    """Runs each item in a task of its own. No connection is held while the provider is called."""

    def __init__(
        self,
        store: AsyncStore,
        *,
        insistence: Insistence,
        contracts: Contracts,
        threads: HandlerThreads,
        emit: Emit,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.invocations = Invocations(schema=store.settings.schema, store_id=store.store_id)
        self.renewals = Renewals(on_answer=self._renewed_from_thread)
        self.on_free: Callable[[], None] = lambda: None
        """Called when an item has ended and its slot is free."""
        self.ended = 0
        """Items that have ended since the start."""
        self.permits: Counter[str] = Counter()
        """How many times a permit was asked for with which answer."""
        self.admissions: Counter[str] = Counter()
        """The same for the admission of an invocation; `reply_lost` if nobody knows the answer."""
        self.draining = asyncio.Event()
        """Nothing is begun any more: what is not admitted is released."""
        self._store = store
        self._insistence = insistence
        self._contracts = contracts
        self._calling = Calling(self.invocations, threads)
        self._emit = emit
        self._tasks = Tasks(on_error=on_error)
        self._loop = asyncio.get_running_loop()

    # --- from the dispatcher and from the worker

    def begin(self, claimed: ClaimedWork, *, asked_at: float) -> None:
        """Run an item. `asked_at`: the loop's time before the claim was sent."""
        invocation = Invocation(claimed, asked_at=asked_at)
        self.invocations.add(invocation)
        self.renewals.add(claimed)
        self._set_timer(invocation)
        self._tasks.spawn(self._run(invocation), name=f"onecommit:work {claimed.contract_name}")

    async def wait(self, *, timeout: float | None = None) -> bool:
        """Wait until nothing runs; false after `timeout`."""
        return await self._tasks.wait(timeout=timeout)

    def interrupt_all(self, stop: Stop) -> None:
        """Cancel every executor."""
        for invocation in self.invocations:
            invocation.interrupt(stop)

    async def abandon(self, *, timeout: float) -> int:
        """Give up what still runs and return how many that are; their leases end by themselves."""
        abandoned = len(self.invocations)
        await self._tasks.cancel(timeout=timeout)
        return abandoned

    # --- one item

    async def _run(self, invocation: Invocation) -> None:
        claimed = invocation.claimed
        work = self._contracts.of(claimed)
        try:
            await self._attempt(invocation, work)
        finally:
            self.renewals.remove(claimed.fence)
            self.invocations.remove(invocation)
            if invocation.timer is not None:
                invocation.timer.cancel()
            self.ended += 1
            self._contracts.give_back(claimed.contract_name)
            self.on_free()

    async def _attempt(self, invocation: Invocation, work: AnyWork) -> None:
        match await self._calling.prepare(invocation, work).ended():
            case Returned(payload):
                await self._permit(invocation, work, payload)
            case Raised(error):
                await self._suspend(invocation, error)
            case None:
                return  # given up before anything began

    async def _permit(self, invocation: Invocation, work: AnyWork, payload: Any) -> None:
        if self.draining.is_set():
            await self._complete(invocation, ending.DRAINING)
            return
        permission = await self._insistence.run(acquire_permit(invocation.fence))
        self.permits[permission.outcome] += 1
        if not permission.is_given:
            self._refused(invocation, permission)
        elif self.draining.is_set():
            await self._complete(invocation, ending.DRAINING)
        else:
            await self._invoke(invocation, work, payload)

    async def _suspend(self, invocation: Invocation, error: BaseException) -> None:
        """Leave to an operator what this contract cannot read, or what the code that reads it failed at."""
        if not isinstance(error, InvalidWork):
            self._failed(invocation, error)
        suspended = await self._insistence.run(suspend_contract(invocation.fence))
        self._report(invocation, "contract_unavailable", suspended)

    async def _invoke(self, invocation: Invocation, work: AnyWork, payload: Any) -> None:
        try:
            # Asked once: the second asker is refused, and then nobody knows whether the first was admitted.
            admission = await self._store.run(admit_invocation(invocation.fence))
        except StoreUnavailable:
            self.admissions["reply_lost"] += 1
            await self._complete(invocation, ending.ADMISSION_LOST)
            return
        self.admissions[admission.outcome] += 1
        if admission.is_given:
            await self._complete(invocation, await self._execute(invocation, work, payload))
        else:
            self._refused(invocation, admission)

    async def _execute(self, invocation: Invocation, work: AnyWork, payload: Any) -> WorkEnd:
        if invocation.stop is not None:
            return ending.stopped_before(invocation.stop.value)
        invocation.executing = self._calling.execute(invocation, work, payload)
        try:
            exit_ = await invocation.executing.ended()
        finally:
            invocation.executing = None
        match exit_:
            case Returned(end):
                return end
            case Raised(error):
                self._failed(invocation, error)
                return ending.of_error(error, code=invocation.stop_code)
            case None:
                return ending.stopped_before(invocation.stop_code or Stop.SHUTDOWN.value)

    def _failed(self, invocation: Invocation, error: BaseException) -> None:
        self._emit(
            WorkAttemptFailed(
                **_names(invocation),
                failure=type(error).__qualname__,
                frames=frames_of(error),
            )
        )

    async def _complete(self, invocation: Invocation, end: WorkEnd) -> None:
        try:
            completion = await self._insistence.run(complete_work(invocation.fence, end))
        except EpochFenced:
            digest = hashlib.sha256(end.result or b"").hexdigest()
            self._emit(WorkCompletionFenced(**_names(invocation), digest=digest))
            raise
        self._report(invocation, end.event.value, completion)

    def _report(self, invocation: Invocation, event: str, completion: WorkCompletion) -> None:
        ended = WorkSuspended if completion.is_suspended else WorkAttemptEnded
        self._emit(
            ended(
                **_names(invocation),
                event=event,
                outcome=completion.outcome.value,
                state=completion.state,
                code=completion.code,
            )
        )

    def _refused(self, invocation: Invocation, permission: Permission) -> None:
        self._emit(
            WorkAttemptRefused(
                **_names(invocation),
                code=permission.code or "",
            )
        )

    # --- leases

    def _renewed_from_thread(self, fence: WorkFence, renewal: Renewal) -> None:
        self._loop.call_soon_threadsafe(self._renewed, fence, renewal)

    def _renewed(self, fence: WorkFence, renewal: Renewal) -> None:
        invocation = self.invocations.find(fence)
        if invocation is None:
            return
        if renewal.outcome is RenewalOutcome.STALE or renewal.lease_expires_at is None:
            self.renewals.remove(fence)
            invocation.interrupt(Stop.LEASE_LOST)
            return
        invocation.extend(renewal.lease_expires_at)
        self._set_timer(invocation)
        if renewal.cancellation_requested:
            invocation.is_cancelled = True

    def _set_timer(self, invocation: Invocation) -> None:
        if invocation.timer is not None:
            invocation.timer.cancel()
        margin = invocation.claimed.lease.total_seconds() * _MARGIN
        invocation.timer = self._loop.call_at(
            invocation.expires_at - margin, invocation.interrupt, Stop.LEASE_ENDING
        )


def _names(invocation: Invocation) -> WorkNames:
    fence = invocation.fence
    return WorkNames(work=fence.work_id, contract=invocation.claimed.label, attempt=fence.attempt)
