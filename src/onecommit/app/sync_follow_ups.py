# Generated from async_follow_ups.py by tools/generate_sync.py: edit that file, then `make sync`.
"""What follows when an attempt is ended without its worker: by rescue, cancellation or a callback."""

from collections.abc import Callable, Sequence

from onecommit.app.follow_ups import REFUSALS, ask, result_in, told_of
from onecommit.app.job_definition import JobDefinition
from onecommit.app.registration import Registry
from onecommit.calls.call import Call
from onecommit.calls.follow_ups import (
    ClosedJob,
    closed_by_callback,
    closed_jobs,
    enqueue_follow_up,
)
from onecommit.domain.follow_up import FollowUp, Transition
from onecommit.domain.job import JobState
from onecommit.drivers.driver import SyncDriver
from onecommit.store.sync_store import SyncStoreTransaction
from onecommit.telemetry.events import Event, FollowUpFailed, FollowUpsUnknown
from onecommit.telemetry.tracebacks import frames_of


def enqueue_asked(
    transaction: SyncStoreTransaction | SyncDriver,
    asked: Callable[[], Sequence[FollowUp]],
    *,
    epoch: int,
) -> Exception | None:
    """Enqueue what follows an end that stands anyway, all or nothing; why not, if it cannot be had.

    In a caller's own transaction there is no savepoint of ours: a refusal is the caller's.
    """
    try:
        calls = [enqueue_follow_up(follow_up, epoch=epoch) for follow_up in asked()]
    except Exception as error:  # noqa: BLE001 - whatever the application's function raises
        return error
    if not isinstance(transaction, SyncStoreTransaction):
        for call in calls:
            transaction.run(call)
        return None
    try:
        with transaction.savepoint():
            for call in calls:
                transaction.run(call)
    except REFUSALS as error:
        return error
    return None


class SyncClosedJobs:
    """The jobs whose attempts one transaction has ended.

    What cannot be enqueued for a job is left out and reported, and the transition stands.
    """

    def __init__(
        self,
        transaction: SyncStoreTransaction | SyncDriver,
        *,
        registry: Registry,
        again: Transition,
        epoch: int,
    ) -> None:
        self.events: list[Event] = []
        """What to report once the transaction has committed."""
        self.jobs: list[ClosedJob] = []
        self._transaction = transaction
        self._registry = registry
        self._again = again
        self._epoch = epoch

    def follow(self, job_ids: Sequence[int]) -> None:
        """Enqueue what follows, as far as this process knows the jobs."""
        if not job_ids:
            return
        self._follow_all(closed_jobs(job_ids, kinds=self._registry.follow_ups.kinds))

    def follow_callback(self, callback_id: str) -> None:
        """The same for the job whose attempt the callback's resolution has ended, if it has."""
        kinds = self._registry.follow_ups.kinds
        self._follow_all(closed_by_callback(callback_id, kinds=kinds))

    def transition_of(self, job: ClosedJob) -> Transition:
        """What became of the job; a job that is tried again says nothing of why."""
        match job.state:
            case JobState.COMPLETED:
                return Transition.COMPLETED
            case JobState.DEAD:
                return Transition.EXHAUSTED
            case JobState.CANCELLED:
                return Transition.CANCELLED
            case _:
                return self._again

    def _follow_all(self, call: Call[list[ClosedJob]]) -> None:
        self.jobs = self._transaction.run(call)
        for job in self.jobs:
            definition = self._registry.get(job.kind)
            if definition is None:
                self._note_unknown(job)
            else:
                self._follow(job, definition)

    def _follow(self, job: ClosedJob, definition: JobDefinition) -> None:
        transition = self.transition_of(job)
        functions = self._registry.follow_ups.of(job.kind).get(transition, ())
        if not functions:
            return
        told = told_of(
            job, transition, definition=definition, result=result_in(job.detail), code=job.code
        )
        failure = enqueue_asked(
            self._transaction,
            lambda: ask(functions, told, registry=self._registry),
            epoch=self._epoch,
        )
        if failure is not None:
            self._note_failure(job, transition, failure)

    def _note_unknown(self, job: ClosedJob) -> None:
        event = FollowUpsUnknown(kind=job.kind, transition=self.transition_of(job))
        if event not in self.events:
            self.events.append(event)

    def _note_failure(self, job: ClosedJob, transition: Transition, error: Exception) -> None:
        self.events.append(
            FollowUpFailed(
                job=job.job_id,
                kind=job.kind,
                attempt=job.attempt,
                run_lease=job.run_lease,
                transition=transition,
                failure=type(error).__qualname__,
                frames=frames_of(error),
            )
        )
