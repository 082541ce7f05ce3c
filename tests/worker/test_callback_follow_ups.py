"""What follows when a job waits for the outside, and when the outside ends it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import psycopg
import pytest

from onecommit import App, CallbackAnswer, JobContext, JobState, Retry
from onecommit.domain.follow_up import Transition
from onecommit.telemetry.events import FollowUpFailed

from tests.clusters import Cluster, Database
from tests.strict import strict_database
from tests.worker.harness import eventually
from tests.worker.trail import Trail

pytestmark = pytest.mark.pg

LATER = Retry(first=timedelta(hours=1))


@pytest.fixture
def database(postgres: Cluster) -> Iterator[Database]:
    """One for each test: some leave a job that is tried again, and would give its id to the next."""
    with strict_database(postgres) as fresh:
        yield fresh


@pytest.fixture
async def app(app: App) -> AsyncIterator[App]:
    yield app
    await asyncio.to_thread(app.sync.close)


@pytest.fixture
def trail(app) -> Trail:
    """Follow-ups stay in a queue that no worker of the test serves."""
    return Trail(app, queue="trail")


class Ids(asyncio.Queue[str]):
    """The callbacks that handlers have registered."""

    async def get(self) -> str:
        async with asyncio.timeout(30):
            return await super().get()


@pytest.fixture
async def ids() -> Ids:
    return Ids()


async def state_is(app, job, state: JobState) -> None:
    async def seen() -> bool:
        return (await app.jobs.get(job.job_id)).state is state

    await eventually(seen, what=f"the job is {state}")


def follow_everything(job, trail) -> None:
    for transition in Transition:
        getattr(job, f"on_{transition}")(trail)


def waiting_job(app, ids, **options):
    @app.job(**options)
    async def pay(ctx: JobContext, waits: int) -> list[str]:
        heard = []
        for _ in range(waits):
            callback = await ctx.register_callback()
            await ids.put(callback.id)
            heard.append(await ctx.wait_for_callback(callback))
        return heard

    return pay


async def test_each_wait_is_followed_once(app, worker_of, trail, ids):
    pay = waiting_job(app, ids)
    follow_everything(pay, trail)
    job = await pay.enqueue(waits=2)
    await worker_of(queues={"default": 2})
    for n in (1, 2):
        callback = await ids.get()
        await state_is(app, job, JobState.WAITING)
        assert await trail.of(job) == ["waiting"] * n
        assert await app.callbacks.resume(callback, n) is CallbackAnswer.ACCEPTED
    await state_is(app, job, JobState.COMPLETED)
    assert sorted(await trail.of(job)) == ["completed", "waiting", "waiting"]


async def test_a_wait_goes_on_when_its_follow_up_fails(app, worker_of, events, trail, ids):
    pay = waiting_job(app, ids)
    pay.on_waiting(lambda _: 1 / 0)
    pay.on_completed(trail)
    job = await pay.enqueue(waits=1)
    await worker_of(queues={"default": 2})
    callback = await ids.get()
    await state_is(app, job, JobState.WAITING)
    await app.callbacks.resume(callback)
    await state_is(app, job, JobState.COMPLETED)
    assert await trail.of(job) == ["completed"]
    [failed] = events.of(FollowUpFailed)
    assert (failed.job, failed.transition, failed.failure) == (
        job.job_id,
        "waiting",
        "ZeroDivisionError",
    )


ENDS = [("complete", 2, "completed"), ("fail", 2, "exhausted"), ("retry", 2, "retried")]


async def resolve(app, how: str, callback: str, *, by: str) -> CallbackAnswer:
    arguments = {"result": {"paid": 1}} if how == "complete" else {"reason": "no"}
    match by:
        case "async":
            return await getattr(app.callbacks, how)(callback, **arguments)
        case "sync":
            return await asyncio.to_thread(getattr(app.sync.callbacks, how), callback, **arguments)
        case _:
            async with await psycopg.AsyncConnection.connect(app.settings.dsn) as connection:
                answer = await getattr(app.callbacks.in_tx(connection), how)(callback, **arguments)
                await (connection.commit() if by == "commit" else connection.rollback())
            return answer


@pytest.mark.parametrize(("how", "max_attempts", "noted"), [*ENDS, ("retry", 1, "exhausted")])
@pytest.mark.parametrize("by", ["async", "sync", "commit"])
async def test_an_end_from_outside_is_followed_in_its_transaction(
    app, worker_of, trail, ids, how, max_attempts, noted, by
):
    """Once: a second answer is refused and brings nothing."""
    told = []
    pay = waiting_job(app, ids, retry=LATER, max_attempts=max_attempts)
    for transition in set(Transition) - {Transition.WAITING}:
        getattr(pay, f"on_{transition}")(trail)
        getattr(pay, f"on_{transition}")(told.append)
    job = await pay.enqueue(waits=1)
    worker = await worker_of(queues={"default": 2})
    callback = await ids.get()
    await state_is(app, job, JobState.WAITING)
    assert await resolve(app, how, callback, by=by) is CallbackAnswer.ACCEPTED
    assert await resolve(app, how, callback, by=by) is not CallbackAnswer.ACCEPTED
    await worker.stop()
    assert await trail.of(job) == [noted]
    [about] = told
    assert (about.job_id, about.attempt, about.arguments) == (job.job_id, 1, {"waits": 1})
    assert about.result == ({"paid": 1} if how == "complete" else None)


@pytest.mark.parametrize("how", ["complete", "fail", "retry"])
async def test_a_rolled_back_end_is_followed_by_nothing(app, worker_of, trail, ids, how):
    pay = waiting_job(app, ids, retry=LATER)
    follow_everything(pay, trail)
    job = await pay.enqueue(waits=1)
    await worker_of(queues={"default": 2})
    callback = await ids.get()
    await state_is(app, job, JobState.WAITING)
    assert await resolve(app, how, callback, by="roll back") is CallbackAnswer.ACCEPTED
    assert await trail.of(job) == ["waiting"]
    await app.callbacks.resume(callback)
    await state_is(app, job, JobState.COMPLETED)
    assert sorted(await trail.of(job)) == ["completed", "waiting"]


@pytest.mark.parametrize(
    ("how", "noted", "state"),
    [
        ("complete", "completed", JobState.COMPLETED),
        ("fail", "exhausted", JobState.DEAD),
        ("retry", "retried", None),
    ],
)
async def test_a_kept_end_is_followed_when_it_ends_an_attempt(
    app, worker_of, trail, ids, database, how, noted, state
):
    """It came when no attempt ran: the next one that asks under the name ends by it; not by a retry."""

    @app.job(retry=LATER)
    async def pay(ctx: JobContext) -> None:
        callback = await ctx.register_callback(name="paid")
        await ids.put(callback.id)
        if ctx.attempt == 1:
            raise RuntimeError
        await ctx.wait_for_callback(callback)

    job = await pay.enqueue()
    worker = await worker_of(queues={"default": 2})
    await worker.drain()
    await worker.stop()
    callback = await ids.get()
    for transition in set(Transition) - {Transition.WAITING}:
        getattr(pay, f"on_{transition}")(trail)
    assert await resolve(app, how, callback, by="async") is CallbackAnswer.ACCEPTED
    assert await trail.of(job) == []
    with database.connect() as raw:
        raw.execute("update onecommit.scheduled set run_at = now()")
    await worker_of(queues={"default": 2})
    if how == "retry":
        again = await ids.get()
        assert again != callback
        await resolve(app, how, again, by="async")
    else:  # the handler may be stopped before it can tell the id
        await state_is(app, job, state)
    assert await trail.of(job) == [noted]


async def test_an_end_that_is_kept_after_another_has_ended_the_attempt_is_followed_by_nothing(
    app, worker_of, trail, ids
):
    """Also in the transaction of the other."""

    @app.job(retry=LATER)
    async def pay(ctx: JobContext) -> None:
        for name in ("paid", "signed"):
            await ids.put((await ctx.register_callback(name=name)).id)
        await asyncio.Event().wait()

    pay.on_retried(trail)
    job = await pay.enqueue()
    await worker_of(queues={"default": 2})
    paid, signed = await ids.get(), await ids.get()
    async with await psycopg.AsyncConnection.connect(app.settings.dsn) as connection:
        callbacks = app.callbacks.in_tx(connection)
        later = {"reason": "no", "delay": timedelta(hours=1)}
        assert await callbacks.retry(paid, **later) is CallbackAnswer.ACCEPTED
        assert await callbacks.retry(signed, **later) is CallbackAnswer.ACCEPTED
    assert await trail.of(job) == ["retried"]


async def test_whoever_answers_for_a_job_that_it_does_not_know_is_told(
    app, worker_of, trail, ids, caplog
):
    pay = waiting_job(app, ids)
    pay.on_completed(trail)
    job = await pay.enqueue(waits=1)
    await worker_of(queues={"default": 2})
    callback = await ids.get()
    await state_is(app, job, JobState.WAITING)
    settings = app.settings
    async with App(settings.dsn, store_id=settings.store_id, epoch=settings.epoch) as elsewhere:
        Trail(elsewhere, queue="trail").job.on_completed(lambda _: None)
        await elsewhere.callbacks.complete(callback)
    assert "follow_up.unknown_kind kind=pay transition=completed" in caplog.text
    assert await trail.of(job) == []
