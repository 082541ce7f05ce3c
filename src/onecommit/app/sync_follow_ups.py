# Generated from async_follow_ups.py by tools/generate_sync.py: edit that file, then `make sync`.
"""What follows when an attempt is ended without its worker: by rescue, cancellation or a callback."""

from collections.abc import Sequence

from onecommit.app.follow_ups import REFUSALS, arguments_of, ask, result_in
from onecommit.app.registration import JobDefinition, Registry
from onecommit.calls.call import Call
from onecommit.calls.follow_ups import (
    ClosedJob,
    closed_by_callback,
    closed_jobs,
    enqueue_follow_up,
)
from onecommit.domain.follow_up import FollowUp, JobTransition, Transition
from onecommit.domain.job import JobState
from onecommit.drivers.driver import SyncDriver
from onecommit.store.sync_store import SyncStoreTransaction
from onecommit.telemetry.events import Event, FollowUpFailed, FollowUpsUnknown
from onecommit.telemetry.tracebacks import frames_of


class SyncClosedJobs:
    """The jobs whose attempts one transaction has ended.

    Each job's follow-ups stand in a savepoint: what cannot be enqueued is left out and reported, and
    the transition stands. In a caller's own transaction there is none, so a refusal is the caller's.
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
        about = JobTransition(
            transition=transition,
            job_id=job.job_id,
            kind=job.kind,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            run_lease=job.run_lease,
            arguments=arguments_of(definition, job.args or "{}"),
            result=result_in(job.detail),
            code=job.code,
        )
        try:
            follow_ups = ask(functions, about, registry=self._registry)
        except Exception as error:  # noqa: BLE001 - whatever the application's function raises
            self._note_failure(job, transition, error)
        else:
            self._enqueue(job, transition, follow_ups)

    def _enqueue(
        self, job: ClosedJob, transition: Transition, follow_ups: Sequence[FollowUp]
    ) -> None:
        if not isinstance(self._transaction, SyncStoreTransaction):
            self._enqueue_all(follow_ups)
            return
        try:
            with self._transaction.savepoint():
                self._enqueue_all(follow_ups)
        except REFUSALS as error:
            self._note_failure(job, transition, error)

    def _enqueue_all(self, follow_ups: Sequence[FollowUp]) -> None:
        for follow_up in follow_ups:
            self._transaction.run(enqueue_follow_up(follow_up, epoch=self._epoch))

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
