"""Whatever a handler returns or raises becomes the outcome that the store records."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from onecommit.app.context import JobContext, SyncJobContext
from onecommit.domain.job import JobState, Outcome
from onecommit.domain.outcome import Cancel, Complete, Discard, RetryAfter, Snooze
from onecommit.domain.retry import Retry
from onecommit.domain.unique import Unique
from onecommit.errors import DiscardError
from onecommit.telemetry.events import AttemptFailed, StaleAttempt

pytestmark = pytest.mark.pg

NOW = Retry(first=timedelta(0))
LATER = Retry(first=timedelta(hours=1))


async def test_jobs_run_with_their_arguments_and_are_completed(app, worker_of):
    ran = []

    @app.job()
    async def add(ctx: JobContext, left: int, right: int = 2) -> int:
        ran.append((ctx.attempt, left, right))
        return left + right

    first = await add.enqueue(left=1)
    second = await add.enqueue(left=5, right=6)
    worker = await worker_of()
    await worker.drain()

    assert sorted(ran) == [(1, 1, 2), (1, 5, 6)]
    views = [await app.jobs.get(job.job_id) for job in (first, second)]
    assert [view.state for view in views] == [JobState.COMPLETED] * 2
    assert [view.detail["result"] for view in views] == [3, 11]


async def test_a_handler_that_waits_and_one_that_does_not_complete_alike(app, worker_of):
    order = []

    @app.job()
    async def quick(ctx: JobContext, n: int) -> None:
        order.append(n)

    @app.job()
    async def slow(ctx: JobContext, n: int) -> None:
        await asyncio.sleep(0)
        order.append(n)

    await quick.enqueue_many([{"n": n} for n in range(100)])
    await slow.enqueue_many([{"n": n} for n in range(100, 200)])
    worker = await worker_of(queues={"default": 7})
    await worker.drain()

    assert sorted(order) == list(range(200))


async def test_a_plain_function_runs_in_a_thread(app, worker_of):
    names = []

    @app.job()
    def work(ctx: SyncJobContext, n: int) -> dict[str, int]:
        names.append(threading.current_thread().name)
        return {"n": n}

    job = await work.enqueue(n=3)
    worker = await worker_of()
    await worker.drain()

    assert names[0].startswith("onecommit-handler")
    assert (await app.jobs.get(job.job_id)).detail == {"result": {"n": 3}}


async def test_no_more_jobs_run_at_a_time_than_the_queue_allows(app, worker_of):
    release = asyncio.Event()
    running = 0
    most = 0
    full = asyncio.Event()

    @app.job()
    async def hold(ctx: JobContext) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await release.wait()
        running -= 1

    await hold.enqueue_many([{}] * 9)
    worker = await worker_of(queues={"default": 3})
    async with asyncio.timeout(20):
        await full.wait()
    release.set()
    await worker.drain()
    assert most == 3


async def test_each_waiting_handler_has_a_task_and_a_context_of_its_own(app, worker_of):
    import contextvars

    variable = contextvars.ContextVar("variable", default="clean")
    seen, tasks = [], []

    @app.job()
    async def quick(ctx: JobContext) -> None:
        seen.append(variable.get())
        variable.set("dirty")

    @app.job()
    async def slow(ctx: JobContext) -> None:
        seen.append(variable.get())
        variable.set("dirty")
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        assert asyncio.current_task() is tasks[-1] or asyncio.current_task() in tasks
        assert variable.get() == "dirty"

    await quick.enqueue_many([{}] * 5)
    await slow.enqueue_many([{}] * 5)
    worker = await worker_of()
    await worker.drain()
    assert seen == ["clean"] * 10
    assert len(set(tasks)) == 5


async def test_an_exception_is_retried_until_the_handler_succeeds(app, worker_of, events):
    attempts = []

    @app.job(retry=NOW)
    async def flaky(ctx: JobContext) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("secret payload")

    job = await flaky.enqueue()
    worker = await worker_of()
    await worker.drain()

    assert attempts == [1, 2, 3]
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED
    failures = events.of(AttemptFailed)
    assert [failure.failure for failure in failures] == ["ValueError"] * 2
    assert all("flaky" in failure.frames for failure in failures)
    assert "secret" not in repr(events.seen)


async def test_a_job_that_is_tried_again_shows_what_its_last_attempt_raised(app, worker_of):
    """Between the attempts and during the next one; what ended it has its own detail."""
    seen = []

    @app.job(retry=NOW)
    async def flaky(ctx: JobContext) -> None:
        seen.append((await app.jobs.get(ctx.job_id)).detail)
        if ctx.attempt < 3:
            raise ValueError(f"no luck in attempt {ctx.attempt}")

    @app.job(retry=LATER)
    async def broken(ctx: JobContext) -> None:
        raise KeyError("to")

    job, waits = await flaky.enqueue(), await broken.enqueue()
    worker = await worker_of()
    await worker.drain()

    assert seen == [
        None,
        {"type": "ValueError", "error": "no luck in attempt 1"},
        {"type": "ValueError", "error": "no luck in attempt 2"},
    ]
    assert (await app.jobs.get(job.job_id)).detail is None
    waiting = await app.jobs.get(waits.job_id)
    assert (waiting.state, waiting.detail) == (
        JobState.SCHEDULED,
        {"type": "KeyError", "error": "'to'"},
    )


async def test_the_last_attempt_that_fails_moves_the_job_to_the_dead_letters(app, worker_of):
    @app.job(retry=NOW, max_attempts=2)
    async def broken(ctx: JobContext) -> None:
        await asyncio.sleep(0)
        raise KeyError("x" * 5000)

    job = await broken.enqueue()
    worker = await worker_of()
    await worker.drain()

    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt, view.code) == (JobState.DEAD, 2, "handler_error")
    assert view.detail["type"] == "KeyError"
    assert len(view.detail["error"]) == 1000


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Snooze(timedelta(hours=1)), (JobState.SCHEDULED, None, 0, None)),
        (RetryAfter(timedelta(hours=1)), (JobState.SCHEDULED, None, 1, None)),
        (Discard("not wanted"), (JobState.DEAD, Outcome.DISCARDED, 1, "discarded")),
        (Cancel("changed my mind"), (JobState.CANCELLED, Outcome.CANCELLED, 1, None)),
        (Complete({"a": 1}), (JobState.COMPLETED, Outcome.COMPLETED, 1, None)),
    ],
    ids=["snooze", "retry_after", "discard", "cancel", "complete"],
)
async def test_an_outcome_value_is_recorded_as_such(app, worker_of, outcome, expected):
    state, recorded, attempt, code = expected

    @app.job()
    async def choose(ctx: JobContext) -> Any:
        return outcome

    job = await choose.enqueue()
    worker = await worker_of()
    await worker.drain()

    view = await app.jobs.get(job.job_id)
    assert view.state is state
    assert view.attempt == attempt
    assert recorded is None or view.outcome is recorded
    assert code is None or view.code == code


async def test_a_snoozed_job_comes_back_without_having_used_an_attempt(app, worker_of):
    attempts = []

    @app.job(max_attempts=1)
    async def later(ctx: JobContext) -> Snooze | None:
        attempts.append((ctx.attempt, ctx.run_lease))
        return Snooze(timedelta(0)) if len(attempts) < 3 else None

    job = await later.enqueue()
    worker = await worker_of()
    await worker.drain()

    assert attempts == [(1, 1), (1, 2), (1, 3)]
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


async def test_discard_error_is_not_retried(app, worker_of):
    @app.job()
    async def hopeless(ctx: JobContext) -> None:
        raise DiscardError("no such customer")

    job = await hopeless.enqueue()
    worker = await worker_of()
    await worker.drain()

    view = await app.jobs.get(job.job_id)
    assert (view.state, view.outcome) == (JobState.DEAD, Outcome.DISCARDED)
    assert view.detail == {"type": "DiscardError", "error": "no such customer"}


async def test_a_handler_that_outlasts_its_time_limit_is_stopped_and_retried(app, worker_of):
    cleaned = []

    @app.job(timeout=timedelta(milliseconds=50), retry=LATER)
    async def endless(ctx: JobContext) -> None:
        assert ctx.deadline is not None
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(ctx.is_cancelled)

    job = await endless.enqueue()
    worker = await worker_of()
    await worker.drain()

    assert cleaned == [True]
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)


async def test_the_time_limit_of_a_job_overrides_that_of_its_kind(app, worker_of, events):
    @app.job(timeout=timedelta(hours=1), retry=LATER)
    async def endless(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    await endless.options(timeout=timedelta(milliseconds=50)).enqueue()
    worker = await worker_of()
    await worker.drain()
    [failed] = events.of(AttemptFailed)
    assert failed.code == "timeout"


async def test_a_plain_function_past_its_time_limit_keeps_its_attempt_until_it_returns(
    app, worker_of
):
    told = threading.Event()

    @app.job(timeout=timedelta(milliseconds=50))
    def stubborn(ctx: SyncJobContext) -> str:
        while not ctx.is_cancelled:
            told.wait(0.005)
        return "finished all the same"

    job = await stubborn.enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert view.detail == {"result": "finished all the same"}


async def test_completion_frees_the_unique_key(app, worker_of):
    @app.job(unique=Unique())
    async def once(ctx: JobContext, n: int) -> None: ...

    first = await once.enqueue(n=1)
    again = await once.enqueue(n=1)
    worker = await worker_of()
    await worker.drain()
    after = await once.enqueue(n=1)

    assert (again.job_id, again.created) == (first.job_id, False)
    assert after.created
    assert after.job_id != first.job_id


async def test_progress_is_stored_and_kept_with_the_completed_job(app, worker_of, database):
    halfway = asyncio.Event()
    go_on = asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        ctx.set_progress({"done": 1})
        await ctx.flush_progress()
        halfway.set()
        await go_on.wait()
        ctx.set_progress({"done": 2})

    job = await work.enqueue()
    worker = await worker_of()
    async with asyncio.timeout(20):
        await halfway.wait()
    assert (await app.jobs.get(job.job_id)).progress == {"done": 1}
    go_on.set()
    await worker.drain()

    assert (await app.jobs.get(job.job_id)).detail["progress"] == {"done": 2}
    with database.connect() as connection:
        assert connection.execute("select count(*) from onecommit.progress").fetchone() == (0,)


async def test_a_thread_can_publish_progress(app, worker_of):
    @app.job()
    def work(ctx: SyncJobContext) -> None:
        ctx.set_progress([1, 2])
        ctx.flush_progress()

    job = await work.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert (await app.jobs.get(job.job_id)).detail["progress"] == [1, 2]


async def test_a_cancelled_job_is_stopped_where_it_runs(app, worker_of, events):
    begun = asyncio.Event()
    ended = asyncio.Event()

    @app.job()
    async def endless(ctx: JobContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    job = await endless.enqueue()
    worker = await worker_of()
    async with asyncio.timeout(20):
        await begun.wait()
        await app.jobs.cancel(job.job_id, actor="me", reason="test")
        await ended.wait()
    await worker.drain()
    assert (await app.jobs.get(job.job_id)).state is JobState.CANCELLED
    assert not events.of(StaleAttempt), "nothing is recorded about an attempt that is closed"
