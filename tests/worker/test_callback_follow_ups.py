"""What follows when a job waits for the outside, and when the outside ends it."""

import asyncio
from datetime import timedelta

import pytest

from onecommit import CallbackAnswer, JobContext, JobState, Retry
from onecommit.domain.follow_up import Transition
from onecommit.telemetry.events import FollowUpFailed

from tests.worker.harness import eventually
from tests.worker.trail import Trail

pytestmark = pytest.mark.pg

LATER = Retry(first=timedelta(hours=1))


@pytest.fixture
def trail(app) -> Trail:
    """Follow-ups stay in a queue that no worker of the test serves."""
    return Trail(app, queue="trail")


@pytest.fixture
async def ids() -> "asyncio.Queue[str]":
    """The callbacks that handlers have registered."""
    return asyncio.Queue()


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
