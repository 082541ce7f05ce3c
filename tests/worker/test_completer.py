"""One item that the store refuses, or somebody holds, does not keep the others of its batch from being recorded."""

import asyncio

import psycopg
import pytest

from onecommit import App, Discard
from onecommit.app.context import JobContext
from onecommit.domain.job import JobState
from onecommit.telemetry.events import AttemptUnrecorded, StaleAttempt

from tests.worker.harness import eventually

pytestmark = pytest.mark.pg


async def test_a_refused_item_is_found_and_left_open_while_the_others_are_recorded(
    app, worker_of, events
):
    @app.job(max_attempts=1)
    async def work(ctx: JobContext, n: int) -> int:
        return n

    jobs = await work.enqueue_many([{"n": n} for n in range(20)])
    worker = await worker_of()
    completer = worker._machinery.completer
    complete_with = completer.complete_with

    def spoil(attempt, *, detail, progressed):
        # What our own encoder would never let through.
        broken = attempt.job_id == jobs[7].job_id
        complete_with(attempt, detail="{" if broken else detail, progressed=progressed)

    completer.complete_with = spoil
    await worker.drain()

    views = [await app.jobs.get(job.job_id) for job in jobs]
    assert [view.state for view in views].count(JobState.COMPLETED) == 19
    assert views[7].state is JobState.RUNNING
    [unrecorded] = events.of(AttemptUnrecorded)
    assert unrecorded.job == jobs[7].job_id
    await app.jobs.cancel(jobs[7].job_id, actor="me", reason="test")


HOLDS = {
    # How the handler ends, and whether anything follows.
    "completes": (lambda: None, False),
    "discards": (lambda: Discard("no"), False),
    "is followed": (lambda: None, True),
}


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("how", HOLDS)
async def test_what_an_open_transaction_holds_is_recorded_when_it_has_ended_and_the_rest_at_once(
    app: App, worker_of, events, how: str, end: str
):
    """A caller resolves a callback and dawdles; the handler did not wait for it, and has ended."""
    result, follows = HOLDS[how]
    registered: asyncio.Queue[str] = asyncio.Queue()
    may_end = asyncio.Event()

    @app.job(max_attempts=1)
    async def held(ctx: JobContext) -> object:
        registered.put_nowait((await ctx.register_callback()).id)
        await may_end.wait()
        return result()

    @app.job(queue="nobody")
    async def after(ctx: JobContext) -> None: ...

    @app.job()
    async def other(ctx: JobContext) -> None: ...

    if follows:
        held.on_completed(lambda _: after.follow_up())
    job = await held.enqueue()
    worker = await worker_of(queues={"default": 10})
    callback = await registered.get()
    async with await psycopg.AsyncConnection.connect(app.settings.dsn) as connection:
        await app.callbacks.in_tx(connection).retry(callback, reason="again")
        others = await other.enqueue_many([{}] * 5)
        may_end.set()
        await all_completed(app, others)
        completer = worker._machinery.completer
        await eventually(lambda: completer.unrecorded == 1, what="one attempt is held")
        assert (await app.jobs.get(job.job_id)).state is JobState.RUNNING
        await getattr(connection, end)()
    await completer.settle()
    view = await app.jobs.get(job.job_id)
    if end == "commit":
        assert (view.state, view.code) == (JobState.DEAD, "callback_retried")
        assert [stale.job for stale in events.of(StaleAttempt)] == [job.job_id]
    else:
        assert view.state is (JobState.DEAD if how == "discards" else JobState.COMPLETED)
        assert events.of(StaleAttempt) == []
    followed = await app.jobs.list(queue="nobody", state=JobState.READY)
    assert len(followed) == (follows and end == "rollback")
    await app.jobs.cancel_many([each.job_id for each in followed], actor="me", reason="test")


async def all_completed(app: App, jobs) -> None:
    async def seen() -> bool:
        views = [await app.jobs.get(job.job_id) for job in jobs]
        return all(view.state is JobState.COMPLETED for view in views)

    await eventually(seen, what="the other jobs are completed")
