"""Observers hear what is committed, and can neither stop nor slow the worker."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.domain.job import JobState
from onecommit.domain.outcome import Cancel, Discard, RetryAfter, Snooze
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import UsageError
from onecommit.telemetry.events import (
    AttemptCancelled,
    AttemptCompleted,
    AttemptEnded,
    AttemptExhausted,
    AttemptRescued,
    AttemptRetried,
    CompletedThenRaised,
    Event,
    ObserverFailed,
    ObserversBehind,
    ObserversCaughtUp,
    WorkerStarted,
    WorkerStopped,
)
from onecommit.worker import observation

from tests.worker.harness import eventually

pytestmark = pytest.mark.pg


class Seen(list):
    """What one observer was called with; a test waits for as many as it expects."""

    async def wait_for(self, count: int) -> "Seen":
        await eventually(lambda: len(self) >= count, what=f"{count} events, not {len(self)}")
        return self


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
async def test_every_recorded_end_is_told(app, worker_of, is_async):
    """With the job and the attempt, after the commit; a snooze is no end."""
    ends = {
        "completed": None,
        "retried": RetryAfter(timedelta(hours=1)),
        "exhausted": Discard("no"),
        "cancelled": Cancel("no"),
        "snoozed": Snooze(timedelta(hours=1)),
    }
    seen = Seen()

    @app.job()
    async def work(ctx: JobContext, end: str) -> Any:
        return ends[end]

    if is_async:

        @app.on(AttemptEnded)
        async def observe(event: AttemptEnded) -> None:
            await asyncio.sleep(0)
            seen.append(event)
    else:

        @app.on(AttemptEnded)
        def observe(event: AttemptEnded) -> None:
            seen.append(event)

    jobs = {end: await work.enqueue(end=end) for end in ends}
    worker = await worker_of()
    await worker.drain()
    await worker.stop()
    assert {(type(event), event.job, event.attempt) for event in seen} == {
        (AttemptCompleted, jobs["completed"].job_id, 1),
        (AttemptRetried, jobs["retried"].job_id, 1),
        (AttemptExhausted, jobs["exhausted"].job_id, 1),
        (AttemptCancelled, jobs["cancelled"].job_id, 1),
    }
    assert {event.kind for event in seen} == {"work"}


async def test_the_row_is_there_when_the_observer_is_called(app, worker_of):
    states = Seen()

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    @app.on(AttemptCompleted)
    async def observe(event: AttemptCompleted) -> None:
        states.append((await app.jobs.get(event.job)).state)

    await work.enqueue_many([{}] * 20)
    worker = await worker_of()
    await worker.drain()
    assert await states.wait_for(20) == [JobState.COMPLETED] * 20


async def test_followed_ends_are_told_too(app, worker_of):
    seen = Seen()

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    @app.job(queue="elsewhere")
    async def after(ctx: JobContext) -> None: ...

    work.on_completed(lambda _: after.follow_up())
    app.on(AttemptEnded)(seen.append)
    job = await work.enqueue()
    worker = await worker_of(queues={"default": 1})
    await worker.drain()
    [event] = await seen.wait_for(1)
    assert (type(event), event.job) == (AttemptCompleted, job.job_id)


async def test_a_caller_owned_completion_is_told_after_the_evidence(
    app, worker_of, database, events
):
    """Not when the receipt is returned: one that did not commit is no completion."""
    seen = Seen()

    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext, how: str) -> FinalizationReceipt:
        connection = await psycopg.AsyncConnection.connect(database.dsn)
        receipt = await ctx.complete_in_tx(connection)
        await (connection.rollback() if how == "roll back" else connection.commit())
        await connection.close()
        if how == "raise":
            raise RuntimeError("too late")
        return receipt

    app.on(AttemptEnded)(seen.append)
    jobs = {how: await settle.enqueue(how=how) for how in ("commit", "raise", "roll back")}
    worker = await worker_of()
    await worker.drain()
    await worker.stop()
    assert {(type(event), event.job) for event in seen} == {
        (AttemptCompleted, jobs["commit"].job_id),
        (AttemptCompleted, jobs["raise"].job_id),
        (AttemptRetried, jobs["roll back"].job_id),
    }
    assert len(events.of(CompletedThenRaised)) == 1


async def test_the_leader_tells_of_rescues(app, worker_of, database):
    seen = Seen()

    @app.job(queue="lost")
    async def work(ctx: JobContext) -> None: ...

    app.on(AttemptRescued)(seen.append)
    job = await work.enqueue()
    async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as raw:
        epoch = app.settings.epoch
        cursor = await raw.execute("select onecommit.register_worker('w', '{}', %s)", (epoch,))
        (dead,) = await cursor.fetchone()
        await raw.execute(
            "select from onecommit.claim_jobs(%s, 1, 'lost', 1, null, null, %s)", (dead, epoch)
        )
        await raw.execute("select onecommit.retire_worker(%s, %s)", (dead, epoch))
    await worker_of(queues={"default": 1})
    [event] = await seen.wait_for(1)
    assert (event.job, event.kind, event.attempt, event.run_lease) == (job.job_id, "work", 1, 1)


async def test_any_event_can_be_observed_from_the_first_to_the_last(app, worker_of):
    seen = Seen()

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    app.on(Event)(seen.append)
    await work.enqueue()
    worker = await worker_of()
    await worker.drain()
    await worker.stop()
    kinds = [type(event) for event in seen]
    assert {WorkerStarted, AttemptCompleted} <= set(kinds)
    assert kinds[-1] is WorkerStopped


@pytest.mark.parametrize("failure", [RuntimeError, SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
async def test_an_observer_that_raises_harms_nobody(app, worker_of, events, failure, is_async):
    """It is named in the log, and the others are called."""
    seen = Seen()

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    def bad(_: AttemptCompleted) -> None:
        raise failure

    async def bad_async(_: AttemptCompleted) -> None:
        raise failure

    app.on(AttemptCompleted)(bad_async if is_async else bad)
    app.on(AttemptCompleted)(seen.append)
    app.on(ObserverFailed)(seen.append)  # an observer's failure is not told to observers
    await work.enqueue_many([{}] * 3)
    worker = await worker_of()
    await worker.drain()
    await worker.stop()
    assert [type(event) for event in seen] == [AttemptCompleted] * 3
    failed = events.of(ObserverFailed)
    assert len(failed) == 3
    assert failed[0].failure == failure.__name__
    assert failed[0].observer.endswith("bad_async" if is_async else "bad")
    assert failed[0].event == "attempt.completed"


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
async def test_an_observer_that_hangs_costs_events_and_nothing_else(
    app, worker_of, events, monkeypatch, is_async
):
    """Jobs go on, events beyond the bound are dropped and counted, and the worker still ends."""
    monkeypatch.setattr(observation, "MOST_WAITING", 10)
    monkeypatch.setattr(observation, "_LAST_CALLS", 0.2)
    release, release_thread = asyncio.Event(), threading.Event()
    seen = Seen()

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    if is_async:

        @app.on(AttemptCompleted)
        async def hang(event: AttemptCompleted) -> None:
            seen.append(event)
            await release.wait()
    else:

        @app.on(AttemptCompleted)
        def hang(event: AttemptCompleted) -> None:
            seen.append(event)
            release_thread.wait()

    worker = await worker_of()
    await work.enqueue()
    await seen.wait_for(1)  # it hangs now
    await work.enqueue_many([{}] * 50)
    await worker.drain()
    await events.wait_for(ObserversBehind)
    assert len(seen) == 1
    release.set()
    release_thread.set()
    await seen.wait_for(11)
    caught_up = await events.wait_for(ObserversCaughtUp)
    assert len(events.of(ObserversBehind)) == 1
    assert caught_up.dropped == 40
    release.clear()
    release_thread.clear()
    await work.enqueue()
    await seen.wait_for(12)
    async with asyncio.timeout(10):
        await worker.stop()
    release_thread.set()


async def test_nobody_pays_for_observers_that_nobody_has(app, worker_of, events):
    """The worker makes no event for each attempt then."""

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    app.on(WorkerStarted)(lambda _: None)
    await work.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert worker._machinery.completer.on_ended is None
    assert not events.of(AttemptEnded)


@pytest.mark.parametrize("wrong", [str, "attempt.completed", None, AttemptEnded.__name__])
async def test_what_is_not_an_event_cannot_be_observed(app, wrong):
    with pytest.raises(UsageError, match="not a class of events"):
        app.on(wrong)(print)
