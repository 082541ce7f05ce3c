"""What follows when an attempt of this worker ends."""

from collections.abc import Mapping

from onecommit.app.async_follow_ups import AsyncClosedJobs, enqueue_asked
from onecommit.app.follow_ups import ask, checked, told_of
from onecommit.app.registration import Registry
from onecommit.calls.call import Call
from onecommit.calls.follow_ups import begin_wait
from onecommit.domain.attempt import Attempt
from onecommit.domain.callback import Callback
from onecommit.domain.closing import Finish, FollowedUp
from onecommit.domain.follow_up import FollowUp, Transition
from onecommit.domain.identity import Epoch
from onecommit.domain.job import Outcome
from onecommit.store.async_store import AsyncStoreTransaction
from onecommit.telemetry.events import AttemptFailed, Emit, FollowUpFailed, names_of
from onecommit.telemetry.tracebacks import frames_of
from onecommit.worker.insistence import Insistence
from onecommit.worker.jobs import ending
from onecommit.worker.jobs.ending import Completed, Ending
from onecommit.worker.jobs.kind import Kind


class FollowUps:
    """Asks the follow-up functions of a kind, and decides what their failure means.

    A completion without its follow-ups would break what the application promises, so the attempt has
    failed instead. Every other transition is a fact already: it stands, and the failure is reported.
    """

    def __init__(self, kinds: Mapping[str, Kind], *, registry: Registry, emit: Emit) -> None:
        self._kinds = kinds
        self._registry = registry
        self._emit = emit

    def closing_of(
        self, attempt: Attempt, ends: Ending, *, progressed: bool = False
    ) -> Ending | FollowedUp:
        """How to close the attempt: as it ends, with what follows, or as failed."""
        kind = self._kinds.get(attempt.kind)
        given = ends.follow_ups if isinstance(ends, Completed) else ()
        if kind is None or (not kind.follow_ups and given == ()):
            return ends
        finish = ends if isinstance(ends, Finish) else _completion(attempt, ends)
        transition = finish.transition
        if transition is None:
            return ends
        try:
            result = ends.result if isinstance(ends, Completed) else None
            follow_ups = self._asked(kind, attempt, transition, result=result, code=finish.code)
            follow_ups = (*checked(given, registry=self._registry), *follow_ups)
        except Exception as error:  # noqa: BLE001 - whatever the application's function raises
            return self.without(finish, error)
        if not follow_ups:
            return ends
        return FollowedUp(finish=finish, follow_ups=follow_ups, progressed=progressed)

    def without(self, finish: Finish, error: Exception) -> Finish | FollowedUp:
        """How to close the attempt when its follow-ups cannot be had."""
        attempt = finish.attempt
        if finish.transition is not Transition.COMPLETED:
            self._report(attempt, finish.transition, error)
            return finish
        failed = ending.failure(
            attempt, self._kinds[attempt.kind], code="follow_up_error", error=error
        )
        self._emit(
            AttemptFailed(
                **names_of(attempt),
                code="follow_up_error",
                failure=type(error).__qualname__,
                frames=frames_of(error),
            )
        )
        closing = self.closing_of(attempt, failed)
        return failed if isinstance(closing, Completed) else closing

    async def register(
        self,
        attempt: Attempt,
        call: Call[Callback],
        insistence: Insistence,
        *,
        named: bool,
        epoch: Epoch,
    ) -> Callback:
        """Register a callback; under its name an end may have been kept, which is followed now."""
        kind = self._kinds.get(attempt.kind)
        if not named or kind is None or not kind.follow_ups:
            return await insistence.run(call)

        async def work(transaction: AsyncStoreTransaction) -> tuple[Callback, AsyncClosedJobs]:
            callback = await transaction.run(call)
            closed = AsyncClosedJobs(
                transaction, registry=self._registry, again=Transition.RETRIED, epoch=epoch
            )
            await closed.follow_callback(callback.id)
            return callback, closed

        callback, closed = await insistence.transact(work, operation=call.routine.name)
        for event in closed.events:
            self._emit(event)
        return callback

    async def begin_wait(
        self, attempt: Attempt, callback: Callback, insistence: Insistence, *, epoch: Epoch
    ) -> None:
        """Mark the callback as awaited and enqueue what follows, if anything does."""
        kind = self._kinds.get(attempt.kind)
        if kind is None or Transition.WAITING not in kind.follow_ups:
            return

        async def work(transaction: AsyncStoreTransaction) -> Exception | None:
            if not await transaction.run(begin_wait(callback, epoch=epoch)):
                return None
            return await enqueue_asked(
                transaction,
                lambda: self._asked(kind, attempt, Transition.WAITING),
                epoch=epoch,
            )

        failed = await insistence.transact(work, operation="begin_wait")
        if failed is not None:
            self._report(attempt, Transition.WAITING, failed)

    def _asked(
        self,
        kind: Kind,
        attempt: Attempt,
        transition: Transition,
        *,
        result: object = None,
        code: str | None = None,
    ) -> tuple[FollowUp, ...]:
        functions = kind.follow_ups.get(transition, ())
        if not functions:
            return ()
        told = told_of(attempt, transition, definition=kind.definition, result=result, code=code)
        return ask(functions, told, registry=self._registry)

    def _report(self, attempt: Attempt, transition: Transition | None, error: Exception) -> None:
        self._emit(
            FollowUpFailed(
                **names_of(attempt),
                transition=str(transition),
                failure=type(error).__qualname__,
                frames=frames_of(error),
            )
        )


def _completion(attempt: Attempt, ends: Completed) -> Finish:
    return Finish(attempt=attempt, outcome=Outcome.COMPLETED, detail=ends.detail)
