"""A worker that ends keeps its promises: what runs may finish, what did not start is given back."""

import asyncio
import threading

import pytest

from onecommit.app.context import JobContext, SyncJobContext
from onecommit.domain.job import JobState
from onecommit.telemetry.events import WorkerDraining, WorkerStopped

pytestmark = pytest.mark.pg

WAITING = {JobState.SCHEDULED, JobState.READY}
"""Given back: scheduled for now, and ready as soon as a leader looks."""


async def states_of(app, jobs):
    views = [await app.jobs.get(job.job_id) for job in jobs]
    return [(view.state, view.attempt) for view in views]


async def begin(app, worker_of, handler, *, count=1, **settings):
    """Enqueue jobs and start a worker that runs one of them at a time."""
    jobs = await handler.enqueue_many([{}] * count)
    worker = await worker_of(queues={"default": 1}, **settings)
    return jobs, worker


async def test_running_jobs_finish_within_the_budget(app, worker_of, events):
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        begun.set()
        await go_on.wait()

    jobs, worker = await begin(app, worker_of, work)
    async with asyncio.timeout(30):
        await begun.wait()
    stop = asyncio.create_task(worker.stop())
    await events.wait_for(WorkerDraining)
    go_on.set()
    assert await stop == 0
    assert await states_of(app, jobs) == [(JobState.COMPLETED, 1)]
    stopped = await events.wait_for(WorkerStopped)
    assert (stopped.completed, stopped.abandoned) == (1, 0)


async def test_jobs_that_have_not_started_are_given_back_at_once_and_not_counted(
    app, worker_of, events
):
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        begun.set()
        await go_on.wait()

    jobs, worker = await begin(app, worker_of, work, count=3)
    station = worker._machinery.stations["default"]
    async with asyncio.timeout(30):
        await begun.wait()
    taken = await app.jobs.list(state=JobState.RUNNING)
    station.add(await claim_more(worker, 2), skew=station._skew)
    stop = asyncio.create_task(worker.stop())
    draining = await events.wait_for(WorkerDraining)
    assert draining.released == 2
    assert len(taken) == 1
    go_on.set()
    await stop
    states = await states_of(app, jobs)
    assert states.count((JobState.COMPLETED, 1)) == 1
    assert len([attempt for state, attempt in states if state in WAITING and attempt == 0]) == 2


async def claim_more(worker, limit):
    """Claim ahead, as a worker does whose jobs end quickly."""
    from onecommit.calls.attempts import claim_jobs

    machinery = worker._machinery
    request = machinery.requests.begin()
    call = claim_jobs(
        "default",
        worker=machinery.incarnation.worker,
        request=request,
        limit=limit,
        lifetime_us=None,
        sleep=None,
        epoch=machinery.incarnation.epoch,
    )
    claim = await machinery.store.run(call)
    machinery.requests.answered(request, claim.attempts)
    return claim.attempts


async def test_past_the_budget_handlers_are_cancelled_and_their_jobs_given_back(app, worker_of):
    cleaned = []

    @app.job()
    async def endless(ctx: JobContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(ctx.is_cancelled)

    begun = asyncio.Event()
    jobs, worker = await begin(app, worker_of, endless, drain_budget=0.05)
    async with asyncio.timeout(30):
        await begun.wait()
    assert await worker.stop() == 0
    assert cleaned == [True]
    [(state, attempt)] = await states_of(app, jobs)
    assert state in WAITING
    assert attempt == 0  # the shutdown was not the job's fault


async def test_a_second_request_does_not_wait_for_the_budget(app, worker_of, events):
    begun = asyncio.Event()

    @app.job()
    async def endless(ctx: JobContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    _, worker = await begin(app, worker_of, endless, drain_budget=3600.0)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        await begun.wait()
        worker.request_stop()
        await events.wait_for(WorkerDraining)
        worker.request_stop()
        await running


async def test_a_handler_that_nobody_can_stop_is_left_to_rescue_and_counted(
    app, worker_of, events, database
):
    begun, release = threading.Event(), threading.Event()

    @app.job()
    def stuck(ctx: SyncJobContext) -> None:
        begun.set()
        release.wait(60)

    jobs, worker = await begin(app, worker_of, stuck, drain_budget=0.05, cancel_grace=0.05)
    await asyncio.to_thread(begun.wait, 30)
    assert await worker.stop() == 1
    release.set()
    assert (await events.wait_for(WorkerStopped)).abandoned == 1
    assert await states_of(app, jobs) == [(JobState.RUNNING, 1)]
    with database.connect() as connection:
        [(ended,)] = connection.execute(
            "select ended_at is not null from onecommit.worker order by worker desc limit 1"
        )
        assert ended, "it is deregistered, so that rescue comes at once"
        connection.execute(
            "select onecommit.rescue_jobs(1000000000, 100,"
            " (select active_epoch from onecommit.store_status()))"
        )
    [(state, _)] = await states_of(app, jobs)
    assert state is JobState.SCHEDULED
    await app.jobs.cancel(jobs[0].job_id, actor="me", reason="test")


async def test_an_async_handler_that_ignores_every_cancellation_does_not_keep_the_worker(
    app, worker_of
):
    begun, release = asyncio.Event(), asyncio.Event()

    @app.job()
    async def stubborn(ctx: JobContext) -> None:
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    jobs, worker = await begin(app, worker_of, stubborn, drain_budget=0.05, cancel_grace=0.05)
    async with asyncio.timeout(30):
        await begun.wait()
        assert await worker.stop() == 1
    release.set()
    assert await states_of(app, jobs) == [(JobState.RUNNING, 1)]


async def test_stopping_twice_waits_for_the_same_end(app, worker_of):
    @app.job()
    async def work(ctx: JobContext) -> None: ...

    _, worker = await begin(app, worker_of, work)
    await worker.drain()
    assert await asyncio.gather(worker.stop(), worker.stop()) == [0, 0]
