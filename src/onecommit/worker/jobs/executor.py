"""What stands around handlers: time limits, interruptions, and what becomes of their results."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, assert_never

from onecommit.domain.attempt import Attempt
from onecommit.domain.closing import Finish, FollowedUp
from onecommit.domain.job import Outcome
from onecommit.domain.outcome import Unfinished
from onecommit.drivers.transaction import reason_behind
from onecommit.errors import InvalidArgument
from onecommit.telemetry.events import (
    AttemptFailed,
    CancellationIgnored,
    Emit,
    UnknownKind,
    names_of,
)
from onecommit.telemetry.tracebacks import frames_of
from onecommit.worker.jobs import ending
from onecommit.worker.jobs.completer import Completer
from onecommit.worker.jobs.ending import Completed, Ending
from onecommit.worker.jobs.follow_ups import FollowUps
from onecommit.worker.jobs.kind import Kind
from onecommit.worker.jobs.progress import Progress
from onecommit.worker.jobs.reconciler import Case, Reconciler, exit_of
from onecommit.worker.jobs.running import Interruption, Run, Running, current_task
from onecommit.worker.open_requests import OpenRequests
from onecommit.worker.settings import WorkerSettings

_SHORTEST_SWEEP = 0.02
_LONGEST_SWEEP = 1.0


class Executor:
    """Decides how each attempt ends. Its loop enforces time limits: one sweep for all, no timer each."""

    name = "time limits"

    def __init__(
        self,
        *,
        running: Running,
        completer: Completer,
        reconciler: Reconciler,
        follow_ups: FollowUps,
        progress: Progress,
        requests: OpenRequests,
        settings: WorkerSettings,
        emit: Emit,
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Starts the next sweep at once; set by whoever runs this loop."""
        self._running = running
        self._completer = completer
        self._reconciler = reconciler
        self._follow_ups = follow_ups
        self._progress = progress
        self._requests = requests
        self._settings = settings
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._next_sweep = float("inf")
        self._unknown: set[str] = set()

    # --- while the handler runs

    def hold(self, attempt: Attempt, kind: Kind) -> Run:
        """The handler waits for something: from now on it can be interrupted."""
        run = Run(attempt, kind, current_task(), until=self._limit(attempt, kind))
        self._running.add(run)
        if run.until is not None and run.until < self._next_sweep:
            self.wake()
        return run

    def let_go(self, run: Run) -> None:
        """The attempt needs nothing more from this process."""
        self._running.remove(run)

    def interrupt(self, run: Run, reason: Interruption) -> None:
        """Ask a handler to stop, once."""
        if run.ended or run.interruption is not None:
            return
        run.interruption = reason
        run.interrupted_at = self._loop.time()
        run.task.cancel()
        for wait in list(run.waits):
            wait.cancel()

    def interrupt_all(self, reason: Interruption) -> int:
        """Ask every handler to stop; return how many there were."""
        runs = list(self._running)
        for run in runs:
            self.interrupt(run, reason)
        return len(runs)

    def abandon_all(self) -> None:
        """Leave every attempt that still runs to rescue: nothing is recorded about it any more."""
        for run in self._running:
            run.interruption = Interruption.ABANDONED

    def cancel(self, cancelled: Iterable[tuple[int, int]]) -> None:
        """Stop those handlers whose attempts the store has closed."""
        for job_id, run_lease in cancelled:
            run = self._running.find(job_id, run_lease)
            if run is not None:
                self.interrupt(run, Interruption.CANCELLED)

    async def run_once(self) -> float | None:
        """Interrupt what has run out of time; return the seconds until the next limit."""
        now = self._loop.time()
        soonest = float("inf")
        for run in self._running:
            if run.interruption is not None:
                self._deal_with_ignored(run, now)
            elif run.until is not None and run.until <= now:
                self.interrupt(run, Interruption.TIMEOUT)
            elif run.until is not None:
                soonest = min(soonest, run.until)
        pause = min(max(soonest - now, _SHORTEST_SWEEP), _LONGEST_SWEEP)
        if not len(self._running):
            self._next_sweep = float("inf")
            return None
        self._next_sweep = now + pause
        return pause

    # --- when it has ended

    def is_plain(self, kind: Kind, run: Run | None) -> bool:
        """Whether an attempt that returned nothing can be completed just so."""
        if not kind.is_plain or self._progress.published:
            return False
        return run is None or run.interruption is None

    async def conclude(self, run: Run, *, result: Any, error: BaseException | None) -> None:
        """Record how the attempt ended; return when this process owes it nothing more."""
        await run.end()
        attempt = run.attempt
        if error is not None:
            error = reason_behind(error)
        if run.interruption in _DECIDED_WITHOUT_IT:
            self._progress.forget(attempt)
        elif run.kind.caller_owned:
            self._progress.forget(attempt)  # complete_job has stored it
            await self._reconciler.conclude(self._case_of(run, result, error))
        elif run.interruption in _CLOSED_BY_OTHERS:
            self._progress.forget(attempt)
            self._requests.closed([attempt])
        else:
            ends = self._ending_of(run, result, error)
            progressed = await self._progress.conclude(attempt)
            self._record(attempt, ends, progressed=progressed)

    def record_without(self, closing: FollowedUp, error: Exception) -> None:
        """Record the end of an attempt whose follow-ups the store refuses."""
        self._hand_over(closing.finish.attempt, self._follow_ups.without(closing.finish, error))

    def _record(self, attempt: Attempt, ends: Ending, *, progressed: bool = False) -> None:
        closing = self._follow_ups.closing_of(attempt, ends, progressed=progressed)
        self._hand_over(attempt, closing, progressed=progressed)

    def _hand_over(
        self, attempt: Attempt, closing: Ending | FollowedUp, *, progressed: bool = False
    ) -> None:
        match closing:
            case Completed(detail):
                self._completer.complete_with(attempt, detail=detail, progressed=progressed)
            case Finish():
                self._completer.finish(closing)
            case FollowedUp():
                self._completer.follow_up(closing)
            case unreachable:
                assert_never(unreachable)

    def refuse_undecodable(self, attempt: Attempt, error: InvalidArgument) -> None:
        """The arguments do not fit the handler: the job goes to the dead letters."""
        finish = ending.undecodable(attempt, error)
        self._report(attempt, finish, error)
        self._record(attempt, finish)

    def fail_before_start(self, attempt: Attempt, kind: Kind, error: Exception) -> None:
        """The code that reads the arguments raised; the next version of it may not."""
        finish = ending.ending_of_error(error, attempt, kind)
        self._report(attempt, finish, error)
        self._record(attempt, finish)

    def refuse_unknown(self, attempt: Attempt, queue: str) -> None:
        """This worker has no handler for the job."""
        if attempt.kind not in self._unknown:
            self._unknown.add(attempt.kind)
            self._emit(UnknownKind(kind=attempt.kind, queue=queue))
        self._completer.finish(
            ending.unknown_kind(
                attempt,
                delay=timedelta(seconds=self._settings.unknown_kind_delay),
                patience=timedelta(seconds=self._settings.unknown_kind_patience),
            )
        )

    def _ending_of(self, run: Run, result: Any, error: BaseException | None) -> Ending:
        if error is not None:
            finish = self._ending_of_error(run, error)
            self._report(run.attempt, finish, error)
            return finish
        ends = ending.ending_of_result(result, run.attempt, run.kind)
        if isinstance(ends, Finish) and ends.code in _MISTAKES:
            self._report(run.attempt, ends, TypeError())
        return ends

    def _ending_of_error(self, run: Run, error: BaseException) -> Finish:
        if run.interruption is Interruption.TIMEOUT:
            return ending.timed_out(run.attempt, run.kind)
        if run.interruption is Interruption.SHUTDOWN and isinstance(error, asyncio.CancelledError):
            return ending.interrupted(run.attempt, code="shutdown")
        return ending.ending_of_error(error, run.attempt, run.kind)

    def _case_of(self, run: Run, result: Any, error: BaseException | None) -> Case:
        """A caller-owned attempt, and how it ends if the store says that it was not completed."""
        attempt, kind = run.attempt, run.kind
        if error is not None:
            finish = self._ending_of_error(run, error)
        elif isinstance(result, Unfinished):
            finish = ending.finish_of_outcome(result, attempt, kind)
        else:
            finish = ending.not_finalized(attempt, kind)
        case = Case(attempt, exit_of(run, result, error), finish, returned=type(result))
        if error is not None:
            case.report = partial(self._report, attempt, finish, error)
        return case

    def _report(self, attempt: Attempt, finish: Finish, error: BaseException) -> None:
        if finish.code == "shutdown":
            return
        self._emit(
            AttemptFailed(
                **names_of(attempt),
                code=finish.code or Outcome(finish.outcome).value,
                failure=type(error).__qualname__,
                frames=frames_of(error),
            )
        )

    def _limit(self, attempt: Attempt, kind: Kind) -> float | None:
        if kind.timeout is None and attempt.options is None:
            return None
        timeout = kind.timeout_of(attempt)
        return None if timeout is None else self._loop.time() + timeout.total_seconds()

    def _deal_with_ignored(self, run: Run, now: float) -> None:
        """Say once that a handler does not stop; a time limit is kept without it."""
        if run.ended or run.complained or now - run.interrupted_at < self._settings.cancel_grace:
            return
        run.complained = True
        self._emit(
            CancellationIgnored(
                **names_of(run.attempt),
                reason=str(run.interruption),
                seconds=round(now - run.interrupted_at, 1),
            )
        )
        if run.interruption is Interruption.TIMEOUT:
            self._close_overdue(run)

    def _close_overdue(self, run: Run) -> None:
        """Let the job go on elsewhere. Its handler keeps the slot, and whatever it commits is fenced."""
        error = TimeoutError()
        if run.kind.caller_owned:
            self._reconciler.watch(self._case_of(run, None, error))
        else:
            self._record(run.attempt, self._ending_of_error(run, error))
        run.interruption = Interruption.OVERDUE


_MISTAKES = ("invalid_result", "unexpected_receipt")
"""Codes of results that are reported like an exception."""
_DECIDED_WITHOUT_IT = (Interruption.OVERDUE, Interruption.ABANDONED)
_CLOSED_BY_OTHERS = (Interruption.CANCELLED, Interruption.RESCUED)
