"""Connections break at the worst moments; no job is lost, none runs twice for it, and nothing hangs."""

import asyncio
from datetime import timedelta

import pytest

from onecommit.app.app import App
from onecommit.app.context import JobContext
from onecommit.domain.job import JobState
from onecommit.domain.retry import Retry
from onecommit.telemetry.events import ListenerReady, Reconnected, Reconnecting, StaleAttempt

from tests.proxy import Proxy
from tests.worker.harness import start_worker

pytestmark = pytest.mark.pg


@pytest.fixture
async def proxy(database):
    async with Proxy(database.dsn) as forwarder:
        yield forwarder


@pytest.fixture
async def app(app, proxy):
    """An App behind the proxy."""
    settings = app.settings
    async with App(proxy.dsn, store_id=settings.store_id, epoch=settings.epoch) as proxied:
        yield proxied


async def views_of(app, jobs):
    return [await app.jobs.get(job.job_id) for job in jobs]


@pytest.mark.parametrize(
    "lost",
    [("claim_jobs", b"claimed"), ("complete_jobs", b"verdict")],
    ids=["claim", "completion"],
)
async def test_a_lost_reply_is_asked_for_again(app, worker_of, events, proxy, lost):
    operation, reply = lost
    attempts = []

    @app.job()
    async def work(ctx: JobContext, n: int) -> None:
        attempts.append((n, ctx.attempt, ctx.run_lease))

    jobs = await work.enqueue_many([{"n": n} for n in range(50)])
    proxy.lose_reply(containing=reply)
    worker = await worker_of()
    await worker.drain()

    assert proxy.lost.is_set()
    assert sorted(attempts) == [(n, 1, 1) for n in range(50)]
    assert {view.state for view in await views_of(app, jobs)} == {JobState.COMPLETED}
    assert operation in {event.operation for event in events.of(Reconnecting)}
    assert operation in {event.operation for event in events.of(Reconnected)}
    assert not events.of(StaleAttempt)


async def test_a_lost_reply_to_a_retry_counts_one_attempt(app, worker_of, proxy):
    @app.job(retry=Retry(first=timedelta(hours=1)))
    async def fail(ctx: JobContext) -> None:
        raise ValueError

    job = await fail.enqueue()
    proxy.lose_reply(containing=b"verdict")
    worker = await worker_of()
    await worker.drain()

    assert proxy.lost.is_set()
    [view] = await views_of(app, [job])
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)


async def test_what_ended_during_an_outage_is_recorded_after_it(app, worker_of, events, proxy):
    begun = asyncio.Semaphore(0)
    go_on = asyncio.Event()
    ran = []

    @app.job()
    async def work(ctx: JobContext, n: int) -> None:
        begun.release()
        await go_on.wait()
        ran.append((n, ctx.attempt))

    jobs = await work.enqueue_many([{"n": n} for n in range(10)])
    worker = await worker_of()
    async with asyncio.timeout(30):
        for _ in jobs:
            await begun.acquire()
    proxy.refuse()
    go_on.set()
    await events.wait_for(Reconnecting, count=3)
    proxy.accept()
    await worker.drain()

    assert sorted(ran) == [(n, 1) for n in range(10)]
    assert {view.state for view in await views_of(app, jobs)} == {JobState.COMPLETED}


async def test_the_listener_comes_back_after_its_connection_was_cut(app, worker_of, events, proxy):
    ran = asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        ran.set()

    worker = await worker_of(poll_interval=3600.0)
    await events.wait_for(ListenerReady)
    proxy.cut()
    await events.wait_for(ListenerReady, count=2)
    await worker.drain()
    await work.enqueue()
    async with asyncio.timeout(30):
        await ran.wait()


async def test_a_worker_whose_server_does_not_answer_says_so_and_ends(app, events, proxy):
    from onecommit.errors import StoreUnavailable

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    proxy.refuse()
    with pytest.raises(StoreUnavailable):
        await start_worker(app, events)
