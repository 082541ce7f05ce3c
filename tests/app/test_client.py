"""Looking at jobs and operating them."""

import asyncio

import pytest

from onecommit import App, InvalidArgument, JobContext, JobResult, JobState, Unique
from onecommit.app.job import Job
from onecommit.calls.attempts import claim_jobs, finish_jobs
from onecommit.calls.workers import register_worker
from onecommit.domain.closing import Finish
from onecommit.domain.job import Outcome
from onecommit.domain.worker import WorkerInfo
from onecommit.errors import StateRefused

pytestmark = pytest.mark.pg

WHO = {"actor": "ada", "reason": "test"}


@pytest.fixture
def send(app: App) -> Job:
    @app.job(queue="email")
    async def send(ctx: JobContext, to: str) -> None: ...

    return send


async def fail(app: App) -> None:
    """Claim the queue's jobs and let them fail for good."""
    store = await app._stores.async_store()
    info = WorkerInfo(host="h", pid=1, version="0", queues=("email",))
    worker = await store.run(register_worker("w", info, epoch=store.epoch))
    call = claim_jobs(
        "email", worker=worker, request=1, limit=9, lifetime_us=None, sleep=False, epoch=store.epoch
    )
    finishes = [
        Finish(
            attempt=attempt, outcome=Outcome.FAILED, code="handler_error", detail='{"error":"x"}'
        )
        for attempt in (await store.run(call)).attempts
    ]
    assert await store.run(finish_jobs(finishes, epoch=store.epoch)) == []


async def test_jobs_are_listed_from_the_newest_page_by_page(app: App, send: Job):
    ids = [job.job_id for job in await send.enqueue_many([{"to": str(n)} for n in range(5)])]
    first = await app.jobs.list(queue="email", limit=3)
    second = await app.jobs.list(queue="email", limit=3, before=first[-1].job_id)
    assert [job.job_id for job in (*first, *second)] == ids[::-1]
    assert await app.jobs.list(kind="other") == []
    assert await app.jobs.list(state=JobState.DEAD) == []


async def test_a_job_that_nobody_knows(app: App):
    assert await app.jobs.get(10**12) is None
    assert await app.jobs.cancel(10**12, **WHO) is JobResult.NOT_FOUND


async def test_a_ready_job_is_cancelled_once(app: App, send: Job):
    enqueued = await send.enqueue(to="a")
    assert await app.jobs.cancel(enqueued.job_id, **WHO) is JobResult.CANCELLED
    assert (await app.jobs.get(enqueued.job_id)).state is JobState.CANCELLED
    assert await app.jobs.cancel(enqueued.job_id, **WHO) is JobResult.ALREADY_FINISHED


async def test_many_jobs_are_cancelled_together(app: App, send: Job):
    jobs = await send.enqueue_many([{"to": "a"}, {"to": "b"}])
    results = await app.jobs.cancel_many([*[job.job_id for job in jobs], 10**12], **WHO)
    assert list(results.values()) == [
        JobResult.CANCELLED,
        JobResult.CANCELLED,
        JobResult.NOT_FOUND,
    ]


async def test_a_dead_letter_is_retried_or_purged(app: App, send: Job):
    first, second = await send.enqueue_many([{"to": "a"}, {"to": "b"}])
    await fail(app)
    dead = await app.dead_letters.list(queue="email")
    assert [job.job_id for job in dead] == [second.job_id, first.job_id]
    assert dead[0].code == "handler_error"
    retried = await app.dead_letters.retry([first.job_id], **WHO)
    purged = await app.dead_letters.purge([second.job_id], **WHO)
    assert (*retried.values(), *purged.values()) == (JobResult.RETRIED, JobResult.PURGED)
    job = await app.jobs.get(first.job_id)
    assert (job.state, job.attempt) == (JobState.READY, 0)
    assert await app.dead_letters.list() == []


async def test_a_dead_letter_whose_key_was_taken_is_not_retried(app: App, send: Job):
    once = send.options(unique=Unique(by=("to",)))
    dead = await once.enqueue(to="a")
    await fail(app)
    assert (await once.enqueue(to="a")).created
    results = await app.dead_letters.retry([dead.job_id], **WHO)
    assert results == {dead.job_id: JobResult.KEY_HELD}
    assert (await app.jobs.get(dead.job_id)).state is JobState.DEAD


async def test_a_queue_is_paused_and_resumed(app: App, send: Job):
    await send.enqueue(to="a")
    await app.queues.pause("email", **WHO)
    (queue,) = await app.queues.list()
    assert (queue.queue, queue.paused, queue.ready) == ("email", True, 1)
    await app.queues.resume("email", **WHO)
    (queue,) = await app.queues.list()
    assert not queue.paused


async def test_an_unknown_queue_is_not_paused_silently(app: App):
    with pytest.raises(StateRefused, match="no such queue"):
        await app.queues.pause("nowhere", **WHO)


async def test_caller_owned_completion_is_disabled_and_allowed_again(app: App, send: Job):
    await send.enqueue(to="a")
    await fail(app)  # its worker has enabled the queue
    assert (await app.queues.list())[0].caller_owned
    await app.queues.disable_caller_owned("email", **WHO)
    assert not (await app.queues.list())[0].caller_owned
    await asyncio.to_thread(app.sync.queues.allow_caller_owned, "email", **WHO)
    assert (await app.queues.list())[0].caller_owned
    with pytest.raises(StateRefused, match="no such queue"):
        await app.queues.disable_caller_owned("nowhere", **WHO)


@pytest.mark.parametrize("who", [{"actor": "", "reason": "x"}, {"actor": "x", "reason": " "}])
async def test_an_operator_says_who_and_why(app: App, send: Job, who):
    enqueued = await send.enqueue(to="a")
    with pytest.raises(InvalidArgument, match="actor and reason"):
        await app.jobs.cancel(enqueued.job_id, **who)
    assert (await app.jobs.get(enqueued.job_id)).state is JobState.READY


async def test_workers_are_listed(app: App, send: Job):
    await send.enqueue(to="a")
    await fail(app)
    (worker,) = await app.workers.list()
    assert (worker.name, worker.info["queues"], worker.ended_at) == ("w", ["email"], None)


async def test_sync_code_has_the_same_client(app: App, send: Job):
    def operate() -> None:
        enqueued = send.sync.enqueue(to="a")
        assert [job.job_id for job in app.sync.jobs.list()] == [enqueued.job_id]
        app.sync.queues.pause("email", **WHO)
        assert app.sync.queues.list()[0].paused
        assert app.sync.jobs.cancel(enqueued.job_id, **WHO) is JobResult.CANCELLED
        assert app.sync.dead_letters.list() == []
        assert app.sync.workers.list() == []

    await asyncio.to_thread(operate)
