"""A worker that cannot work loses its jobs to the others; one that is fenced ends; an idle one wakes at once."""

import asyncio
import threading
from datetime import timedelta

import pytest

from onecommit import schema
from onecommit.app.app import App
from onecommit.app.context import JobContext
from onecommit.domain.job import JobState
from onecommit.errors import EpochFenced
from onecommit.telemetry.events import (
    HeartbeatStale,
    ListenerReady,
    ListenerSilent,
    ListenerUnavailable,
    LoopBlocked,
    Reconnected,
    WorkerFenced,
    WorkerIdentityLost,
    WorkerReplaced,
    WorkerStopped,
)

from tests.proxy import Proxy
from tests.strict import strict_database
from tests.worker.harness import Events, eventually, start_worker

pytestmark = pytest.mark.pg

QUICK = {"heartbeat_interval": 0.2, "rescue_window": 3.0}


@pytest.fixture
def database(postgres):
    """Nobody else's worker may lead or rescue here."""
    with strict_database(postgres) as fresh:
        yield fresh


class SecondWorker:
    """A worker with an event loop and an App of its own in a thread, started by an event."""

    def __init__(self, app: App, register, *, after: threading.Event) -> None:
        self._settings = app.settings
        self._register = register
        self._after = after
        self._done = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join(30)

    async def _main(self) -> None:
        assert await asyncio.to_thread(self._after.wait, 30)
        settings = self._settings
        async with App(settings.dsn, store_id=settings.store_id, epoch=settings.epoch) as app:
            self._register(app)
            worker = await start_worker(app, Events(), **QUICK)
            await asyncio.to_thread(self._done.wait)
            await worker.stop()


async def test_a_handler_that_never_yields_loses_its_job_and_the_worker_returns_as_another(
    app, worker_of, events
):
    """The thread of the heartbeat notices, names the handler and falls silent."""
    begun, rescued = threading.Event(), threading.Event()
    attempts = []

    def register(app: App):
        @app.job(name="stuck")
        async def stuck(ctx: JobContext) -> None:
            attempts.append(ctx.attempt)
            if ctx.attempt == 1:
                begun.set()
                assert rescued.wait(60), "nobody rescued the job"
            rescued.set()

        return stuck

    stuck = register(app)
    job = await stuck.enqueue()
    with SecondWorker(app, register, after=begun):
        worker = await worker_of(**QUICK)
        replaced = await events.wait_for(WorkerReplaced)
    assert attempts == [1, 2]
    stale = await events.wait_for(HeartbeatStale)
    assert stale.silent_seconds >= QUICK["rescue_window"]
    blocked = await events.wait_for(LoopBlocked)
    assert blocked.kind == "stuck"
    assert "stuck" in blocked.frames
    assert replaced.successor == worker._machinery.incarnation.worker
    await stuck.options(max_attempts=1).enqueue()
    rescued.set()
    await worker.drain()
    assert attempts == [1, 2, 1], "the new incarnation works"
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


async def test_a_worker_declared_dead_stops_what_it_runs_and_registers_anew(
    app, worker_of, events, database
):
    begun = asyncio.Event()
    endings = []

    @app.job()
    async def work(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                endings.append("stopped")
        endings.append("completed")

    job = await work.enqueue()
    worker = await worker_of(heartbeat_interval=0.1, rescue_window=10.0)
    async with asyncio.timeout(30):
        await begun.wait()
    with database.connect() as connection:
        connection.execute("update onecommit.worker set ended_at = clock_timestamp()")
    replaced = await events.wait_for(WorkerReplaced)
    assert replaced.cancelled == 1
    [lost] = events.of(WorkerIdentityLost)
    assert (lost.code, lost.worker) == ("ASDUR405", replaced.worker)
    assert replaced.successor == worker._machinery.incarnation.worker
    # The new incarnation leads, sees the old one ended, and rescues.

    async def completed() -> bool:
        return (await app.jobs.get(job.job_id)).state is JobState.COMPLETED

    await eventually(completed, what="the job is completed by the new incarnation")
    assert endings == ["stopped", "completed"]


async def test_rotating_the_epoch_ends_the_worker(app, worker_of, events, database):
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    await work.enqueue()
    worker = await start_worker(app, events, heartbeat_interval=0.1, rescue_window=5.0)
    async with asyncio.timeout(30):
        await begun.wait()
    settings = app.settings
    schema.rotate_epoch(
        database.migrator_dsn,
        store_id=settings.store_id,
        expected=settings.epoch,
        actor="me",
        reason="test",
    )
    with pytest.raises(EpochFenced):
        async with asyncio.timeout(30):
            await worker.run()
    assert stopped.is_set()
    assert len(events.of(WorkerFenced)) == 1
    assert events.of(WorkerStopped)


async def test_a_wrong_epoch_is_refused_at_the_start(app, events):
    settings = app.settings
    other = App(settings.dsn, store_id=settings.store_id, epoch=1)
    with pytest.raises(EpochFenced):
        await start_worker(other, events)


async def test_an_idle_worker_is_woken_by_a_notice(app, worker_of, events):
    ran = asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        ran.set()

    worker = await worker_of(poll_interval=3600.0)
    await events.wait_for(ListenerReady)
    await worker.drain()
    for _ in range(3):
        ran.clear()
        await work.enqueue()
        async with asyncio.timeout(20):
            await ran.wait()


async def test_a_queue_that_nobody_knew_at_the_start_wakes_the_worker(app, worker_of, events):
    """A notice from a lane that was adopted later, here by the first job of a priority, is understood."""
    ran = asyncio.Event()

    @app.job(priority=1)
    async def urgent(ctx: JobContext) -> None:
        ran.set()

    worker = await worker_of(poll_interval=3600.0)
    await events.wait_for(ListenerReady)
    await urgent.enqueue()
    await worker.drain()
    assert ran.is_set()
    for _ in range(2):
        ran.clear()
        await urgent.enqueue()
        async with asyncio.timeout(20):
            await ran.wait()


async def test_a_scheduled_job_runs_when_it_is_due(app, worker_of, events):
    ran = asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        ran.set()

    worker = await worker_of(poll_interval=3600.0)
    await events.wait_for(ListenerReady)
    await worker.drain()
    await work.options(delay=timedelta(milliseconds=300)).enqueue()
    async with asyncio.timeout(20):
        await ran.wait()


async def test_without_notices_the_worker_polls(app, events):
    """What a transaction pooler does to LISTEN: no error, and no notice."""
    ran = asyncio.Event()
    settings = app.settings
    async with (
        Proxy(settings.dsn) as proxy,
        App(proxy.dsn, store_id=settings.store_id, epoch=settings.epoch) as proxied,
    ):
        proxy.deaf = True

        @proxied.job()
        async def work(ctx: JobContext) -> None:
            ran.set()

        worker = await start_worker(
            proxied, events, poll_interval=3600.0, silent_poll_interval=0.05
        )
        assert (await events.wait_for(ListenerSilent)).code == "ASDUR406"
        assert not events.of(ListenerReady)
        await work.enqueue()
        async with asyncio.timeout(20):
            await ran.wait()
        await worker.stop()


async def test_a_listener_that_is_lost_is_said_once_and_comes_back(
    app, worker_of, events, database
):
    """The worker polls meanwhile; nothing that it runs depends on notices."""
    await worker_of()
    await events.wait_for(ListenerReady)
    with database.connect() as connection:
        ended = connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and query ilike 'listen %'"
        ).fetchall()
    assert ended == [(True,)]
    lost = await events.wait_for(ListenerUnavailable)
    assert (type(lost), lost.code) == (ListenerUnavailable, "ASDUR406")
    await events.wait_for(ListenerReady, count=2)
    assert len(events.of(ListenerUnavailable)) == 1


async def test_a_heartbeat_that_does_not_arrive_for_the_window_is_said_once(app, events):
    """The connection is gone, not the worker: it names the code by which its leases may be lost."""
    settings = app.settings
    async with (
        Proxy(settings.dsn) as proxy,
        App(proxy.dsn, store_id=settings.store_id, epoch=settings.epoch) as proxied,
    ):
        worker = await start_worker(proxied, events, heartbeat_interval=0.1, rescue_window=1.0)
        await events.wait_for(ListenerReady)
        proxy.refuse()
        stale = await events.wait_for(HeartbeatStale)
        assert (stale.code, stale.worker) == ("ASDUR404", worker._machinery.incarnation.worker)
        assert stale.silent_seconds >= 1.0
        heartbeat = worker._machinery.heartbeat
        failures = heartbeat.failures
        await eventually(lambda: heartbeat.failures > failures + 1, what="two more are lost")
        proxy.accept()
        await events.wait_for(Reconnected)
        await eventually(lambda: heartbeat.age < 1.0, what="a heartbeat arrives again")
        await worker.stop()
    assert len(events.of(HeartbeatStale)) == 1
    assert len(events.of(ListenerUnavailable)) == 1, "it was tried again and again, and said once"


async def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(app, worker_of, events):
    ran = asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        ran.set()

    worker = await worker_of(poll_interval=3600.0)
    await events.wait_for(ListenerReady)
    await worker.drain()  # a claim under way has looked already whether the queue is paused
    await app.queues.pause("default", actor="me", reason="test")
    await work.enqueue()
    await worker.drain()
    assert not ran.is_set()
    await app.queues.resume("default", actor="me", reason="test")
    async with asyncio.timeout(20):
        await ran.wait()
