"""Looking at jobs, queues, workers and the ring, and operating them."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from onecommit.app.async_follow_ups import AsyncClosedJobs
from onecommit.app.registration import Registry
from onecommit.app.stores import Stores
from onecommit.calls import operators, views
from onecommit.calls.call import Call, Routine
from onecommit.domain.arguments import checked_flag, checked_number
from onecommit.domain.follow_up import Transition
from onecommit.domain.identity import JobId, WorkerId
from onecommit.domain.job import JobResult, JobState, JobView
from onecommit.domain.queue import QueueFinalization, QueueView
from onecommit.domain.ring import RingView
from onecommit.domain.worker import WorkerLoad, WorkerView
from onecommit.errors import InvalidArgument
from onecommit.store.async_store import AsyncStoreTransaction
from onecommit.telemetry.events import log_event

_FIRST_PAGE, _LARGEST_PAGE = 10, 100
"""Jobs that are cancelled in one transaction; it holds the lock of each until it commits."""
_LONG = 1.0
"""Seconds after which a page was too large: many rows that autovacuum has not seen make each look-up slow."""
_MOST = 10_000


class AsyncJobs:
    """The jobs of the store."""

    def __init__(self, stores: Stores, registry: Registry) -> None:
        self._stores = stores
        self._registry = registry

    async def get(self, job_id: int) -> JobView | None:
        """One job as it stands, or None if the store knows it no longer."""
        store = await self._stores.async_store()
        return await store.run(views.get_job(job_id))

    async def list(
        self,
        *,
        state: JobState | None = None,
        queue: str | None = None,
        kind: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> Sequence[JobView]:
        """Jobs from the newest to the oldest; pass the last id as `before` for the next page."""
        store = await self._stores.async_store()
        call = views.list_jobs(state=state, queue=queue, kind=kind, limit=limit, before=before)
        return await store.run(call)

    async def cancel(self, job_id: int, *, actor: str, reason: str) -> JobResult:
        """End a job that has not finished; a running attempt is told to stop and cannot complete."""
        results = await self.cancel_many(
            [checked_number(job_id, field="job_id")], actor=actor, reason=reason
        )
        return results[JobId(job_id)]

    async def cancel_many(
        self, job_ids: Iterable[int], *, actor: str, reason: str
    ) -> Mapping[JobId, JobResult]:
        """The same for many jobs, in one transaction with their follow-ups."""
        store = await self._stores.async_store()
        call = operators.on_jobs(
            operators.CANCEL_JOBS, job_ids, actor=actor, reason=reason, epoch=store.epoch
        )

        async def cancel(
            transaction: AsyncStoreTransaction,
        ) -> tuple[Mapping[JobId, JobResult], AsyncClosedJobs]:
            results = await transaction.run(call)
            closed = AsyncClosedJobs(
                transaction,
                registry=self._registry,
                again=Transition.CANCELLED,
                epoch=store.epoch,
            )
            await closed.follow([job for job, r in results.items() if r is JobResult.CANCELLED])
            return results, closed

        results, closed = await store.transact(cancel)
        for event in closed.events:
            log_event(event)
        return results

    async def cancel_all(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        tags: Collection[str] = (),
        states: Collection[JobState] | None = None,
        actor: str,
        reason: str,
        limit: int = 1000,
        preview: bool = False,
    ) -> Mapping[JobId, JobResult]:
        """Cancel the newest jobs that have not finished and are all that is given.

        Up to a hundred of them are looked for and then cancelled in one transaction, with their follow-ups;
        after an error what was committed before stays. A job that ends in between is answered
        `already_finished`.

        Args:
            queue: Only of this queue.
            kind: Only of this kind.
            tags: Only with all of these tags.
            states: Only in these states.
            actor: Who does it; kept with each transaction.
            reason: Why; kept likewise.
            limit: At most so many, up to 10,000; fewer results than this mean that no further one was found.
            preview: Only answer which, with `preview` for each.

        Raises:
            InvalidArgument: Nothing says which jobs, a state is not of unfinished jobs, or the limit is wrong.
        """
        _check_selection(queue, kind, tags, states, limit=limit, preview=preview)
        store = await self._stores.async_store()
        results: dict[JobId, JobResult] = {}
        before: int | None = None
        size = _FIRST_PAGE
        while left := limit - len(results):
            page = min(left, size)
            began = time.monotonic()
            call = operators.unfinished_jobs(
                states=states, queue=queue, kind=kind, tags=tags, limit=page, before=before
            )
            found = await store.run(call)
            if found and preview:
                results |= dict.fromkeys(found, JobResult.PREVIEW)
            elif found:
                results |= await self.cancel_many(found, actor=actor, reason=reason)
            if len(found) < page:
                break
            before = found[-1]
            size = _next_size(size, took=time.monotonic() - began)
        return results


class AsyncDeadLetters:
    """The jobs that failed for good."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def list(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> Sequence[JobView]:
        """Dead letters from the newest to the oldest."""
        store = await self._stores.async_store()
        call = views.list_jobs(
            state=JobState.DEAD, queue=queue, kind=kind, limit=limit, before=before
        )
        return await store.run(call)

    async def retry(
        self, job_ids: Iterable[int], *, actor: str, reason: str
    ) -> Mapping[JobId, JobResult]:
        """Put jobs back into their queues, with all their attempts."""
        return await _on_jobs(
            self._stores, operators.RETRY_DEAD_JOBS, job_ids, actor=actor, reason=reason
        )

    async def purge(
        self, job_ids: Iterable[int], *, actor: str, reason: str
    ) -> Mapping[JobId, JobResult]:
        """Delete jobs for good."""
        return await _on_jobs(
            self._stores, operators.PURGE_DEAD_JOBS, job_ids, actor=actor, reason=reason
        )


class AsyncQueues:
    """The queues of the store."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def list(self) -> Sequence[QueueView]:
        """Every queue and what lies in it."""
        store = await self._stores.async_store()
        return await store.run(views.list_queues())

    async def finalization(self) -> Sequence[QueueFinalization]:
        """The queues that accept caller-owned completion, and who or what keeps others from it."""
        store = await self._stores.async_store()
        return await store.run(views.finalization_status())

    async def pause(self, queue: str, *, actor: str, reason: str) -> None:
        """Start no further job of the queue; what runs goes on, and jobs are still accepted."""
        await self._run(operators.PAUSE_QUEUE, queue, actor=actor, reason=reason)

    async def resume(self, queue: str, *, actor: str, reason: str) -> None:
        """Start jobs of the queue again."""
        await self._run(operators.RESUME_QUEUE, queue, actor=actor, reason=reason)

    async def disable_caller_owned(self, queue: str, *, actor: str, reason: str) -> None:
        """Refuse caller-owned completion in the queue until it is allowed again.

        A transaction that has completed its attempt already may still commit.
        """
        await self._run(operators.DISABLE_CALLER_OWNED, queue, actor=actor, reason=reason)

    async def allow_caller_owned(self, queue: str, *, actor: str, reason: str) -> None:
        """Let the workers enable caller-owned completion again, at once if none of them lacks it."""
        await self._run(operators.ALLOW_CALLER_OWNED, queue, actor=actor, reason=reason)

    async def _run(self, routine: Routine, queue: str, *, actor: str, reason: str) -> None:
        store = await self._stores.async_store()
        call: Call[None] = operators.on_queue(
            routine, queue, actor=actor, reason=reason, epoch=store.epoch
        )
        await store.run(call)


class AsyncWorkers:
    """The workers of the store."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def list(self) -> Sequence[WorkerView]:
        """Every worker that is alive or whose jobs are not settled yet."""
        store = await self._stores.async_store()
        return await store.run(views.list_workers())

    async def loads(self) -> Mapping[WorkerId, WorkerLoad]:
        """What each of them holds, and which one leads."""
        store = await self._stores.async_store()
        return await store.run(views.worker_loads())


class AsyncRing:
    """The ring of chapters that holds the jobs."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def get(self) -> RingView:
        """Its chapters and who leads; its `obstacles()` say what keeps it from turning."""
        store = await self._stores.async_store()
        return RingView(
            health=await store.run(views.store_health()),
            chapters=await store.run(views.ring_status()),
            pins=await store.run(views.chapter_pins()),
        )


async def _on_jobs(
    stores: Stores, routine: Routine, job_ids: Iterable[int], *, actor: str, reason: str
) -> Mapping[JobId, JobResult]:
    store = await stores.async_store()
    call = operators.on_jobs(routine, job_ids, actor=actor, reason=reason, epoch=store.epoch)
    return await store.run(call)


def _next_size(size: int, *, took: float) -> int:
    return max(1, size // 2) if took > _LONG else min(2 * size, _LARGEST_PAGE)


def _check_selection(*selected: object, limit: int, preview: bool) -> None:
    checked_flag(preview, field="preview")
    if not 1 <= checked_number(limit, field="limit") <= _MOST:
        raise InvalidArgument(f"`limit` is not 1 to {_MOST}", field="limit")
    if all(each in (None, (), []) for each in selected):
        raise InvalidArgument(
            "nothing says which jobs", remedy="Name a queue, a kind, tags or states."
        )
