"""A handler waits for the outside without a slot and without a connection, and goes on where it stopped."""

import asyncio
import contextlib
import threading
import uuid
from datetime import timedelta

import psycopg
import pytest

from onecommit import (
    CallbackAnswer,
    CallbackTimedOut,
    CallerOwnedJobContext,
    FinalizationReceipt,
    InvalidArgument,
    JobContext,
    JobState,
    Outcome,
    Retry,
    StaleAttempt,
    SyncCallerOwnedJobContext,
    SyncJobContext,
)
from onecommit.errors import UsageError
from onecommit.telemetry.events import AttemptFailed, WorkerReplaced
from onecommit.worker.jobs.callbacks import Callbacks

from tests.proxy import Proxy
from tests.worker.harness import eventually

pytestmark = pytest.mark.pg

NOW = Retry(first=timedelta(0))
HOUR = timedelta(hours=1)


class Desk:
    """Where handlers leave the ids of their callbacks, and what they were given."""

    def __init__(self) -> None:
        self.ids: asyncio.Queue[str] = asyncio.Queue()
        self.heard: list[object] = []

    async def next_id(self) -> str:
        async with asyncio.timeout(30):
            return await self.ids.get()


@pytest.fixture
async def desk() -> Desk:
    return Desk()


async def state_is(app, job, state: JobState) -> None:
    async def seen() -> bool:
        return (await app.jobs.get(job.job_id)).state is state

    await eventually(seen, what=f"the job is {state}")


def waiting_job(app, desk: Desk, **options):
    """A job that waits once and keeps what it was given."""

    @app.job(name=f"wait-{uuid.uuid4()}", **options)
    async def wait(ctx: JobContext) -> object:
        callback = await ctx.register_callback(timeout=HOUR, name="answer")
        desk.ids.put_nowait(callback.id)
        answer = await ctx.wait_for_callback(callback)
        desk.heard.append(answer)
        return answer

    return wait


@pytest.mark.parametrize("payload", [{"paid": True}, [1, "é"], "text", 0, None])
async def test_the_payload_reaches_the_handler(app, worker_of, desk, payload):
    job = await waiting_job(app, desk).enqueue()
    await worker_of()
    callback = await desk.next_id()
    await state_is(app, job, JobState.WAITING)
    assert await app.callbacks.resume(callback, payload) is CallbackAnswer.ACCEPTED
    await state_is(app, job, JobState.COMPLETED)
    assert desk.heard == [payload]
    assert (await app.jobs.get(job.job_id)).attempt == 1


async def test_a_resume_before_the_wait_is_delivered_at_once(app, worker_of, desk):
    @app.job()
    async def early(ctx: JobContext) -> None:
        callback = await ctx.register_callback(timeout=HOUR)
        await app.callbacks.resume(callback.id, "early")
        desk.heard.append(await ctx.wait_for_callback(callback))
        desk.heard.append(await ctx.wait_for_callback(callback))  # asked again, the same

    await early.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert desk.heard == ["early", "early"]


async def test_waiting_handlers_leave_their_slots_to_others(app, worker_of, desk):
    """One slot: five wait at the same time, and others run meanwhile."""
    wait = waiting_job(app, desk, queue="narrow")

    @app.job(queue="narrow")
    async def other(ctx: JobContext) -> None:
        await asyncio.sleep(0)

    jobs = [await wait.enqueue() for _ in range(5)]
    await worker_of(queues={"narrow": 1})
    callbacks = [await desk.next_id() for _ in jobs]
    passing = await other.enqueue()
    await state_is(app, passing, JobState.COMPLETED)
    for callback in callbacks:
        await app.callbacks.resume(callback)
    for job in jobs:
        await state_is(app, job, JobState.COMPLETED)


async def test_those_who_come_back_respect_the_concurrency(app, worker_of, desk):
    """Three are resumed together; never do two run at once, and all of them end."""
    running = most = 0

    @app.job(queue="single")
    async def step(ctx: JobContext) -> None:
        nonlocal running, most
        callback = await ctx.register_callback(timeout=HOUR)
        desk.ids.put_nowait(callback.id)
        await ctx.wait_for_callback(callback)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    jobs = [await step.enqueue() for _ in range(3)]
    await worker_of(queues={"single": 1})
    callbacks = [await desk.next_id() for _ in jobs]
    await asyncio.gather(*(app.callbacks.resume(callback) for callback in callbacks))
    for job in jobs:
        await state_is(app, job, JobState.COMPLETED)
    assert most == 1


async def test_beyond_the_limit_they_keep_their_slots(app, worker_of, desk):
    """So the memory of a worker is bounded."""
    wait = waiting_job(app, desk, queue="bounded")
    jobs = [await wait.enqueue() for _ in range(3)]
    worker = await worker_of(queues={"bounded": 1}, waiting_limit=1)
    first, second = await desk.next_id(), await desk.next_id()
    station = worker._machinery.stations["bounded"]
    await eventually(lambda: (station.parked, station.running) == (2, 1), what="one keeps its slot")
    await app.callbacks.resume(second)
    third = await desk.next_id()
    for callback in (first, third):
        await app.callbacks.resume(callback)
    for job in jobs:
        await state_is(app, job, JobState.COMPLETED)


async def test_drain_does_not_wait_for_the_outside(app, worker_of, desk):
    job = await waiting_job(app, desk).enqueue()
    worker = await worker_of()
    async with asyncio.timeout(20):
        await worker.drain()
    await state_is(app, job, JobState.WAITING)
    await app.jobs.cancel(job.job_id, actor="a", reason="the next test")


async def test_two_callbacks_at_once(app, worker_of, desk):
    @app.job(queue="pair")
    async def both(ctx: JobContext) -> None:
        callbacks = [await ctx.register_callback(timeout=HOUR) for _ in range(2)]
        for each in callbacks:
            desk.ids.put_nowait(each.id)
        desk.heard += await asyncio.gather(*map(ctx.wait_for_callback, callbacks))

    job = await both.enqueue()
    worker = await worker_of(queues={"pair": 1})
    first, second = await desk.next_id(), await desk.next_id()
    await app.callbacks.resume(second, 2)
    await app.callbacks.resume(first, 1)
    await state_is(app, job, JobState.COMPLETED)
    assert desk.heard == [1, 2]
    assert worker._machinery.stations["pair"].running == 0


async def test_sequential_waits_then_completion_in_the_callers_transaction(
    app, worker_of, desk, database
):
    """The token is that of the claim all along, and row and completion land in one commit."""
    tokens = set()

    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        for _ in range(2):
            callback = await ctx.register_callback(timeout=HOUR)
            desk.ids.put_nowait(callback.id)
            desk.heard.append(await ctx.wait_for_callback(callback))
            tokens.add(ctx.token)
        async with (
            await psycopg.AsyncConnection.connect(database.dsn) as connection,
            connection.transaction(),
        ):
            await connection.execute("create table if not exists paid (job bigint)")
            await connection.execute("insert into paid values (%s)", (ctx.job_id,))
            return await ctx.complete_in_tx(connection)

    job = await settle.enqueue()
    await worker_of()
    for number in range(2):
        await app.callbacks.resume(await desk.next_id(), number)
    await state_is(app, job, JobState.COMPLETED)
    assert desk.heard == [0, 1]
    assert len(tokens) == 1
    with database.connect() as connection:
        assert connection.execute("select job from paid").fetchall() == [(job.job_id,)]


async def test_a_plain_function_waits_in_its_thread(app, worker_of, desk, database):
    loop = asyncio.get_running_loop()

    @app.caller_owned_job()
    def settle(ctx: SyncCallerOwnedJobContext) -> FinalizationReceipt:
        callback = ctx.register_callback(timeout=HOUR)
        loop.call_soon_threadsafe(desk.ids.put_nowait, callback.id)
        desk.heard.append(ctx.wait_for_callback(callback))
        with psycopg.connect(database.dsn) as connection, connection.transaction():
            return ctx.complete_in_tx(connection)

    job = await settle.enqueue()
    await worker_of()
    callback = await desk.next_id()
    await state_is(app, job, JobState.WAITING)
    await app.callbacks.resume(callback, 5)
    await state_is(app, job, JobState.COMPLETED)
    assert desk.heard == [5]


# --- other ends


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_timeout_is_an_exception_of_its_own(app, worker_of, desk, threaded):
    if threaded:

        @app.job(name="impatient-thread")
        def impatient(ctx: SyncJobContext) -> None:
            callback = ctx.register_callback(timeout=timedelta(milliseconds=50))
            with contextlib.suppress(CallbackTimedOut):
                ctx.wait_for_callback(callback)
                return
            desk.heard.append("timed out")
    else:

        @app.job(name="impatient")
        async def impatient(ctx: JobContext) -> None:
            callback = await ctx.register_callback(timeout=timedelta(milliseconds=50))
            with contextlib.suppress(CallbackTimedOut):
                await ctx.wait_for_callback(callback)
                return
            desk.heard.append("timed out")

    job = await impatient.enqueue()
    await worker_of()
    await state_is(app, job, JobState.COMPLETED)
    assert desk.heard == ["timed out"]


async def test_an_uncaught_timeout_is_an_error_like_any_other(app, worker_of, events):
    @app.job(max_attempts=1)
    async def impatient(ctx: JobContext) -> None:
        callback = await ctx.register_callback(timeout=timedelta(milliseconds=50))
        await ctx.wait_for_callback(callback)

    job = await impatient.enqueue()
    await worker_of()
    await state_is(app, job, JobState.DEAD)
    assert (await events.wait_for(AttemptFailed)).failure == "CallbackTimedOut"


ENDINGS = {
    "complete": (JobState.COMPLETED, Outcome.COMPLETED, None),
    "fail": (JobState.DEAD, Outcome.FAILED, "callback_failed"),
    "retry": (JobState.SCHEDULED, None, None),
    "cancel": (JobState.CANCELLED, Outcome.CANCELLED, None),
}


async def end_from_outside(app, job, callback: str, how: str) -> None:
    match how:
        case "complete":
            await app.callbacks.complete(callback, {"by": "outside"})
        case "fail":
            await app.callbacks.fail(callback, reason="declined")
        case "retry":
            await app.callbacks.retry(callback, reason="busy", delay=HOUR)
        case "cancel":
            await app.jobs.cancel(job.job_id, actor="a", reason="r")


@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("kind", ["async", "threaded", "caller-owned"])
async def test_the_outside_ends_the_job_and_its_handler_stops(app, worker_of, desk, kind, how):
    loop = asyncio.get_running_loop()
    stopped = threading.Event()

    async def wait(ctx: JobContext | CallerOwnedJobContext) -> None:
        callback = await ctx.register_callback(timeout=HOUR)
        desk.ids.put_nowait(callback.id)
        try:
            await ctx.wait_for_callback(callback)
        except asyncio.CancelledError:
            stopped.set()
            raise

    def wait_in_thread(ctx: SyncJobContext) -> None:
        callback = ctx.register_callback(timeout=HOUR)
        loop.call_soon_threadsafe(desk.ids.put_nowait, callback.id)
        try:
            ctx.wait_for_callback(callback)
        except asyncio.CancelledError:
            stopped.set()
            raise

    name = f"{kind}-{how}"
    match kind:
        case "async":
            registered = app.job(name=name)(wait)
        case "threaded":
            registered = app.job(name=name)(wait_in_thread)
        case _:
            registered = app.caller_owned_job(name=name)(wait)
    job = await registered.enqueue()
    worker = await worker_of(drain_budget=20.0)
    await end_from_outside(app, job, await desk.next_id(), how)
    state, outcome, code = ENDINGS[how]
    await state_is(app, job, state)
    assert await asyncio.to_thread(stopped.wait, 20)
    machinery = worker._machinery
    await eventually(lambda: len(machinery.running) == 0, what="nothing runs any more")
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.outcome, view.code) == (state, outcome, code)
    await eventually(lambda: machinery.requests.attempts == 0, what="it is owed nothing more")
    if how == "complete":
        assert view.detail["result"] == {"by": "outside"}


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_worker_that_ends_gives_its_waiting_jobs_on(app, worker_of, desk, threaded):
    """At once and uncounted; the next worker finds the callback again by its name."""
    loop = asyncio.get_running_loop()
    if threaded:

        @app.job(name="moves-in-thread", queue="moving")
        def wait(ctx: SyncJobContext) -> None:
            callback = ctx.register_callback(timeout=HOUR, name="answer")
            loop.call_soon_threadsafe(desk.ids.put_nowait, callback.id)
            desk.heard.append(ctx.wait_for_callback(callback))
    else:
        wait = waiting_job(app, desk, queue="moving")
    job = await wait.enqueue()
    first = await worker_of(drain_budget=20.0)
    callback = await desk.next_id()
    await state_is(app, job, JobState.WAITING)
    async with asyncio.timeout(15):
        assert await first.stop() == 0
    assert await app.callbacks.resume(callback, "meanwhile") is CallbackAnswer.ACCEPTED
    await worker_of()
    assert await desk.next_id() == callback
    await state_is(app, job, JobState.COMPLETED)
    assert desk.heard == ["meanwhile"]
    assert (await app.jobs.get(job.job_id)).attempt == 1


async def test_an_incarnation_that_is_declared_dead_loses_its_waiting_jobs(
    app, worker_of, desk, database, events
):
    """That counts as an attempt, as for any running job; the callback is found again by its name."""
    job = await waiting_job(app, desk, queue="lost", retry=NOW).enqueue()
    await worker_of(heartbeat_interval=0.2, rescue_window=1.0)
    callback = await desk.next_id()
    await state_is(app, job, JobState.WAITING)
    with database.connect() as connection:
        connection.execute("update onecommit.worker set ended_at = now() where ended_at is null")
    await events.wait_for(WorkerReplaced)
    assert await desk.next_id() == callback
    await app.callbacks.resume(callback, "late")
    await state_is(app, job, JobState.COMPLETED)
    assert desk.heard == ["late"]
    assert (await app.jobs.get(job.job_id)).attempt == 2


async def test_a_time_limit_includes_the_wait(app, worker_of, desk):
    @app.job(max_attempts=1, timeout=timedelta(milliseconds=200))
    async def limited(ctx: JobContext) -> None:
        await ctx.wait_for_callback(await ctx.register_callback(timeout=HOUR))

    job = await limited.enqueue()
    await worker_of()
    await state_is(app, job, JobState.DEAD)
    assert (await app.jobs.get(job.job_id)).code == "timeout"


# --- notices and connections


async def test_without_notices_the_poll_finds_it(app, worker_of, desk, monkeypatch):
    monkeypatch.setattr(Callbacks, "notified", lambda *_: None)
    job = await waiting_job(app, desk).enqueue()
    await worker_of(poll_interval=0.2)
    await app.callbacks.resume(await desk.next_id(), 1)
    await state_is(app, job, JobState.COMPLETED)


async def test_a_notice_spares_the_poll(app, worker_of, desk):
    job = await waiting_job(app, desk).enqueue()
    worker = await worker_of(poll_interval=3600.0)
    machinery = worker._machinery
    callback = await desk.next_id()
    await eventually(lambda: machinery.notifier.listening, what="notices arrive")
    await state_is(app, job, JobState.WAITING)
    await app.callbacks.resume(callback, 1)
    await state_is(app, job, JobState.COMPLETED)


async def test_waiting_holds_no_connection(app, worker_of, desk):
    """More handlers wait than the worker has connections."""
    wait = waiting_job(app, desk, queue="many")
    await wait.enqueue_many([{}] * 60)
    worker = await worker_of(queues={"many": 60})
    callbacks = [await desk.next_id() for _ in range(60)]
    station = worker._machinery.stations["many"]
    await eventually(lambda: station.parked == 60, what="all of them wait")
    assert station.running == 0
    for callback in callbacks:
        await app.callbacks.resume(callback)
    await eventually(lambda: station.ended == 60, what="all of them ended")
    assert worker._machinery.store.settings.max_connections < 60


async def test_a_lost_reply_to_the_registration_makes_one_callback(
    database, worker_of, app, desk, events
):
    from onecommit.app.app import App

    from tests.worker.harness import start_worker

    async with Proxy(database.dsn) as proxy, App(proxy.dsn, **database.identity) as through:
        ids = []

        @through.job(queue="proxied")
        async def wait(ctx: JobContext) -> None:
            proxy.lose_reply(containing=b"register_callback")
            callback = await ctx.register_callback(timeout=HOUR)
            ids.append(callback.id)

        job = await wait.enqueue()
        worker = await start_worker(through, events, queues={"proxied": 1})
        try:
            await state_is(app, job, JobState.COMPLETED)
        finally:
            await worker.stop()
    with database.connect() as connection:
        found = connection.execute(
            "select callback_id::text from onecommit.callback where job_id = %s", (job.job_id,)
        ).fetchall()
    assert found == [(ids[0],)]


# --- bad input


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(-1), timedelta(days=367), 60], ids=str)
async def test_a_bad_timeout_is_refused_before_anything_is_written(app, worker_of, desk, timeout):
    @app.job(name=f"bad-{timeout}", max_attempts=1)
    async def bad(ctx: JobContext) -> None:
        try:
            await ctx.register_callback(timeout=timeout)
        except InvalidArgument as error:
            desk.heard.append(error.field)

    await bad.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert desk.heard == ["timeout"]


async def test_a_callback_of_another_attempt_is_refused(app, worker_of, desk):
    kept = []

    @app.job()
    async def first(ctx: JobContext) -> None:
        kept.append(await ctx.register_callback(timeout=HOUR))

    @app.job()
    async def second(ctx: JobContext) -> None:
        try:
            await ctx.wait_for_callback(kept[0])
        except UsageError as error:
            desk.heard.append(error.message)

    await first.enqueue()
    worker = await worker_of()
    await worker.drain()
    await second.enqueue()
    await worker.drain()
    assert desk.heard == ["the callback belongs to another attempt"]


async def test_a_closed_attempt_cannot_register(app, worker_of, desk):
    @app.job()
    async def late(ctx: JobContext) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await app.jobs.cancel(ctx.job_id, actor="a", reason="r")
        try:
            await ctx.register_callback(timeout=HOUR)
        except StaleAttempt:
            desk.heard.append("stale")

    job = await late.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert (await app.jobs.get(job.job_id)).state is JobState.CANCELLED
