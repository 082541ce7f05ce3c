"""Takes back what dead workers and passed deadlines have left open, for the whole fleet."""

from onecommit.app.async_follow_ups import AsyncClosedJobs
from onecommit.app.registration import Registry
from onecommit.calls.follow_ups import ClosedJob
from onecommit.calls.maintenance import Rescue, rescue_jobs
from onecommit.domain.follow_up import Transition
from onecommit.domain.identity import Epoch
from onecommit.domain.job import JobState
from onecommit.store.async_store import AsyncStore, AsyncStoreTransaction
from onecommit.telemetry.events import (
    AttemptExhausted,
    AttemptRescued,
    Emit,
    Event,
    FollowUpsUnknown,
)

_LIMIT = 500


class Rescuer:
    """Rescues and enqueues what follows in one transaction.

    Of a kind that this process does not know it cannot know whether anything follows; it says so once.
    """

    def __init__(
        self, store: AsyncStore, *, epoch: Epoch, registry: Registry, observed: bool, emit: Emit
    ) -> None:
        self._store = store
        self._epoch = epoch
        self._registry = registry
        self._observed = observed
        self._emit = emit
        self._said: set[Event] = set()

    async def rescue(self, *, window_us: int) -> Rescue:
        """Rescue once, up to a limit."""
        call = rescue_jobs(window_us=window_us, limit=_LIMIT, epoch=self._epoch)

        async def work(transaction: AsyncStoreTransaction) -> tuple[Rescue, AsyncClosedJobs]:
            rescue = await transaction.run(call)
            closed = AsyncClosedJobs(
                transaction,
                registry=self._registry,
                again=Transition.RESCUED,
                epoch=self._epoch,
            )
            await closed.follow(rescue.job_ids)
            return rescue, closed

        rescue, closed = await self._store.transact(work)
        for event in closed.events:
            self._report(event)
        if self._observed:
            for job in closed.jobs:
                self._emit(_ended(job))
        return rescue

    def _report(self, event: Event) -> None:
        if isinstance(event, FollowUpsUnknown):
            if event in self._said:
                return
            self._said.add(event)
        self._emit(event)


def _ended(job: ClosedJob) -> Event:
    kind = AttemptExhausted if job.state is JobState.DEAD else AttemptRescued
    return kind(
        job=job.job_id,
        kind=job.kind,
        attempt=job.attempt,
        run_lease=job.run_lease,
        code=job.code,
    )
