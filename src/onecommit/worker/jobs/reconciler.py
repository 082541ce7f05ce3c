"""Asks the store what became of caller-owned attempts, and acts on the evidence alone."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, assert_never

from onecommit.app.follow_ups import REFUSALS
from onecommit.calls.attempts import finish_jobs
from onecommit.calls.follow_ups import close_with_follow_ups
from onecommit.domain.attempt import Attempt
from onecommit.domain.closing import Finish, FollowedUp, Loss
from onecommit.domain.evidence import (
    Accept,
    AskAgain,
    AttemptStatus,
    Evidence,
    HandlerExit,
    Settle,
    evidence_of,
    reconcile,
)
from onecommit.domain.follow_up import Transition
from onecommit.domain.identity import Epoch
from onecommit.domain.outcome import Cancel, Discard, RetryAfter, Snooze
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import StoreUnavailable
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import (
    AbandonedAttempt,
    CompletedThenRaised,
    Emit,
    NoReceipt,
    ReceiptWithoutCompletion,
    ResolvedAttempt,
    StaleAttempt,
    UnknownOutcome,
    UnresolvedAttempt,
    names_of,
)
from onecommit.worker.jobs import ending
from onecommit.worker.jobs.follow_ups import FollowUps
from onecommit.worker.jobs.inquiry import Inquiry
from onecommit.worker.jobs.running import Interruption, Run
from onecommit.worker.open_requests import OpenRequests
from onecommit.worker.tasks import Tasks

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 2.0


class Reconciler:
    """Concludes caller-owned attempts: whatever the handler says, the store is asked first.

    An attempt of unknown outcome keeps its slot for the budget; then a watcher goes on asking without
    one. Nothing is issued until there is evidence.
    """

    def __init__(
        self,
        store: AsyncStore,
        *,
        epoch: Epoch,
        requests: OpenRequests,
        follow_ups: FollowUps,
        budget: float,
        emit: Emit,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.decided: Counter[Evidence] = Counter()
        """How many attempts were decided by each kind of evidence."""
        self.ended: Counter[Transition | None] = Counter()
        """How many of them ended how; None: back to their queue."""
        self._unresolved: set[Case] = set()
        self.on_ended: Callable[[Attempt, Finish | None], None] | None = None
        """Told about each attempt once the store's evidence says how it ended; None: it completed."""
        self._store = store
        self._epoch = epoch
        self._requests = requests
        self._follow_ups = follow_ups
        self._budget = budget
        self._emit = emit
        self._on_error = on_error
        self._inquiry = Inquiry(store, on_error=on_error)
        self._watchers = Tasks(on_error=on_error)

    @property
    def completed(self) -> int:
        """Attempts that were found completed."""
        return self.ended[Transition.COMPLETED]

    @property
    def watchers(self) -> int:
        """Attempts of unknown outcome that no longer keep a slot."""
        return len(self._watchers)

    async def conclude(self, case: "Case") -> None:
        """Return when the attempt is decided, or when the budget is used up and a watcher goes on."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._budget):
                await self._resolve(case)
        except TimeoutError:
            waited = asyncio.get_running_loop().time() - began
            self._report_unresolved(case, waited)
            self.watch(case)

    def watch(self, case: "Case") -> None:
        """Decide an attempt that keeps no slot any more."""
        self._watchers.spawn(self._watch(case), name="onecommit:watcher")

    async def settle(self, *, timeout: float) -> bool:
        """Wait until every watched attempt is decided; false if that takes longer than `timeout`."""
        return await self._watchers.wait(timeout=timeout)

    async def abandon(self) -> int:
        """Stop watching; what is still unknown is left to rescue. Returns how many there were."""
        abandoned = list(self._unresolved)
        await self._watchers.cancel(timeout=1.0)
        for case in abandoned:
            self._emit(AbandonedAttempt(**names_of(case.attempt), holder_pid=case.holder_pid))
        return len(abandoned)

    async def _watch(self, case: "Case") -> None:
        self._unresolved.add(case)
        try:
            await self._resolve(case)
        finally:
            self._unresolved.discard(case)
        if case.unresolved:
            self._emit(ResolvedAttempt(**names_of(case.attempt)))

    async def _resolve(self, case: "Case") -> None:
        pause = _FIRST_PAUSE
        while not await self._try_to_resolve(case):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _try_to_resolve(self, case: "Case") -> bool:
        action = reconcile(case.exit, await self._status(case))
        match action:
            case Accept(surprising=surprising):
                self._accept(case, surprising=surprising)
            case AskAgain(holder_pid=pid):
                case.holder_pid = pid
                return False
            case Settle.STALE:
                self._report_stale(case)
            case Settle.UNKNOWN:
                self._emit(UnknownOutcome(**names_of(case.attempt)))
            case Settle.AS_HANDLED | Settle.AS_PROTOCOL_ERROR | Settle.AS_PROGRAMMING_ERROR:
                return await self._settle(case, action)
            case unreachable:
                assert_never(unreachable)
        self._requests.closed([case.attempt])
        self.decided[evidence_of(action)] += 1
        return True

    async def _status(self, case: "Case") -> AttemptStatus | None:
        has_receipt = case.exit is HandlerExit.OWN_RECEIPT
        try:
            return await self._inquiry.status(case.attempt, has_receipt=has_receipt)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no evidence
            self._report_failure(case, error)
            return None

    async def _settle(self, case: "Case", settle: Settle) -> bool:
        """Close the open attempt; a commit that is in flight meets the same key, so one of both wins."""
        self._report_mistake(case, settle)
        programming_error = settle is Settle.AS_PROGRAMMING_ERROR
        finish = ending.no_receipt(case.attempt) if programming_error else case.finish
        try:
            losses = await self._close(finish)
        except StoreUnavailable:
            return False  # whether it was recorded is evidence of the next question
        except Exception as error:  # noqa: BLE001 - as above
            self._report_failure(case, error)
            return False
        if losses:
            return False  # something was decided meanwhile: ask what
        self.ended[finish.transition] += 1
        if self.on_ended is not None:
            self.on_ended(case.attempt, finish)
        self._requests.closed([case.attempt])
        self.decided[evidence_of(settle)] += 1
        return True

    async def _close(self, finish: Finish) -> list[Loss]:
        closing = self._follow_ups.closing_of(finish.attempt, finish)
        while isinstance(closing, FollowedUp):
            call = close_with_follow_ups([closing], epoch=self._epoch)
            try:
                return await self._store.run(call)
            except REFUSALS as error:
                closing = self._follow_ups.without(closing.finish, error)
        return await self._store.run(finish_jobs([finish], lock=True, epoch=self._epoch))

    def _report_mistake(self, case: "Case", settle: Settle) -> None:
        if case.reported:
            return
        case.reported = True
        names = names_of(case.attempt)
        if settle is Settle.AS_PROGRAMMING_ERROR:
            self._emit(NoReceipt(**names, returned=case.returned.__qualname__))
        elif settle is Settle.AS_PROTOCOL_ERROR:
            self._emit(ReceiptWithoutCompletion(**names))
        else:
            case.report()

    def _accept(self, case: "Case", *, surprising: bool) -> None:
        self.ended[Transition.COMPLETED] += 1
        if self.on_ended is not None:
            self.on_ended(case.attempt, None)
        if surprising:
            names = names_of(case.attempt)
            self._emit(CompletedThenRaised(**names, exit=case.exit.name.lower()))

    def _report_stale(self, case: "Case") -> None:
        if case.exit is not HandlerExit.CANCELLED:
            wanted = "completed" if case.exit is HandlerExit.OWN_RECEIPT else case.finish.outcome
            self._emit(StaleAttempt(**names_of(case.attempt), wanted=wanted))

    def _report_failure(self, case: "Case", error: Exception) -> None:
        if not case.failed:
            case.failed = True
            self._on_error(error)

    def _report_unresolved(self, case: "Case", waited: float) -> None:
        case.unresolved = True
        self._emit(
            UnresolvedAttempt(
                **names_of(case.attempt),
                waited_seconds=round(waited, 1),
                holder_pid=case.holder_pid,
            )
        )


class Case:
    """One attempt to be decided: how its handler ended, and how it ends if it was not completed."""

    def __init__(
        self, attempt: Attempt, handler_exit: HandlerExit, finish: Finish, *, returned: type
    ) -> None:
        self.attempt = attempt
        self.exit = handler_exit
        self.finish = finish
        self.returned = returned
        self.report: Callable[[], None] = lambda: None
        """Says that the handler failed, once it is known that this decides."""
        self.reported = False
        self.unresolved = False
        """It was reported that the budget was used up."""
        self.failed = False
        """A call about it met what no store that is only out of reach answers; that was reported."""
        self.holder_pid: int | None = None


def exit_of(run: Run, result: Any, error: BaseException | None) -> HandlerExit:
    """How the handler ended, in the terms of the reconciliation table."""
    if error is None:
        return _exit_of_result(run.attempt, result)
    match run.interruption:
        case Interruption.TIMEOUT:
            return HandlerExit.TIMEOUT
        case Interruption.SHUTDOWN:
            return HandlerExit.SHUTDOWN
        case Interruption.CANCELLED | Interruption.RESCUED:
            return HandlerExit.CANCELLED
        case _ if isinstance(error, asyncio.CancelledError):
            return HandlerExit.CANCELLED
        case _:
            return HandlerExit.ERROR


def _exit_of_result(attempt: Attempt, result: Any) -> HandlerExit:
    match result:
        # The exact class: a mock may pretend to be an instance of any.
        case FinalizationReceipt() if type(result) is FinalizationReceipt and result.belongs_to(
            attempt.token
        ):
            return HandlerExit.OWN_RECEIPT
        case Snooze() | RetryAfter() | Discard() | Cancel():
            return HandlerExit.OUTCOME
        case _:
            return HandlerExit.NO_RECEIPT
