"""Nothing that a job or a handler brings stops the worker: each mistake has a clear code, and the next job runs."""

import asyncio
import json
import time
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from onecommit.app.context import CallerOwnedJobContext, JobContext, SyncJobContext
from onecommit.domain.job import JobState, Outcome
from onecommit.domain.outcome import Complete, RetryAfter, Snooze
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.telemetry.events import AttemptFailed, UnknownKind

from tests import bad_calls
from tests.nonsense import NO_DURATION, NO_JSON, NO_NAME, NO_UUID

pytestmark = pytest.mark.pg

NOW = Retry(first=timedelta(0))


@pytest.fixture
async def healthy(app):
    """A job that must still run after everything else went wrong."""
    ran = asyncio.Event()

    @app.job(name="healthy")
    async def run(ctx: JobContext) -> None:
        ran.set()

    async def check() -> None:
        await run.enqueue()
        async with asyncio.timeout(20):
            await ran.wait()

    return check


def enqueue_raw(database, kind: str, args: Any, *, age: str = "0 seconds") -> int:
    """A job as another language's producer might write it; it may have been enqueued a while ago."""
    with database.connect() as connection:
        [job_ids] = connection.execute(
            "select job_ids from onecommit.enqueue_jobs('default', %s, %s, null,"
            " (select active_epoch from onecommit.store_status()))",
            ([kind], [json.dumps(args)]),
        ).fetchone()
        connection.execute(
            "update onecommit.ready set created_at = created_at - %s::interval where job_id = %s",
            (age, job_ids[0]),
        )
    return job_ids[0]


@pytest.mark.parametrize(
    "args",
    [{}, {"n": "text"}, {"n": None}, {"n": 1, "m": 2}, [1], {"n": 1.5}],
    ids=["missing", "text", "null", "extra", "array", "fraction"],
)
async def test_arguments_that_do_not_fit_are_discarded(app, worker_of, database, healthy, args):
    ran = []

    @app.job(name="count")
    async def count(ctx: JobContext, n: int) -> None:
        ran.append(n)

    job = enqueue_raw(database, "count", args)
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job)
    assert (view.state, view.outcome, view.code) == (
        JobState.DEAD,
        Outcome.DISCARDED,
        "undecodable_arguments",
    )
    assert not ran
    await healthy()


async def test_a_young_job_of_an_unknown_kind_waits_for_a_worker_that_knows_it(
    app, worker_of, database, healthy, events
):
    jobs = [enqueue_raw(database, "from another service", {}) for _ in range(3)]
    worker = await worker_of()
    await worker.drain()
    views = [await app.jobs.get(job) for job in jobs]
    assert [(view.state, view.attempt) for view in views] == [(JobState.SCHEDULED, 0)] * 3
    [unknown] = events.of(UnknownKind)
    assert unknown.kind == "from another service"
    await healthy()


async def test_an_old_job_of_an_unknown_kind_uses_up_its_attempts(
    app, worker_of, database, healthy
):
    job = enqueue_raw(database, "forgotten", {}, age="2 hours")
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job)
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)
    await healthy()


@pytest.mark.parametrize(
    "nonsense",
    [
        object(),
        {1, object()},
        float("nan"),
        "\ud800",
        "a\0b",
        Complete(object()),
        Snooze(timedelta(seconds=-1)),
        Snooze("soon"),
        Snooze(timedelta.max),
        RetryAfter(None),
        RetryAfter(timedelta.max),
        "x" * 2_000_000,
    ],
    ids=[
        "object",
        "set",
        "nan",
        "surrogate",
        "nul",
        "complete",
        "negative_delay",
        "text_delay",
        "endless_snooze",
        "no_delay",
        "endless_delay",
        "huge",
    ],
)
async def test_a_result_that_cannot_be_stored_is_a_failure_that_says_so(
    app, worker_of, healthy, events, nonsense
):
    @app.job(max_attempts=1)
    async def talk(ctx: JobContext) -> Any:
        return nonsense

    job = await talk.enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.code) == (JobState.DEAD, "invalid_result")
    assert [event.code for event in events.of(AttemptFailed)] == ["invalid_result"]
    await healthy()


async def test_a_coroutine_as_a_result_is_a_failure_that_says_what_to_write(
    app, worker_of, healthy
):
    async def inner() -> None: ...

    @app.job(max_attempts=1)
    def outer(ctx: SyncJobContext) -> Any:
        return inner()

    job = await outer.enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.code) == (JobState.DEAD, "invalid_result")
    assert "async def" in view.detail["error"]
    await healthy()


def bad_calls_of(ctx: Any) -> bad_calls.Calls:
    """Of a context."""
    for wrong in NO_JSON:
        yield partial(ctx.set_progress, wrong)
    for wrong in (None, timedelta(0), timedelta(days=367), *NO_DURATION):
        yield partial(ctx.register_callback, timeout=wrong)
    for wrong in NO_NAME[1:]:
        yield partial(ctx.register_callback, name=wrong)
    for wrong in (None, "x", 5, NO_UUID):
        yield partial(ctx.wait_for_callback, wrong)


async def test_a_bad_argument_of_a_context_is_refused_and_the_handler_goes_on(
    app, worker_of, database, healthy
):
    found: list[str] = []

    @app.job()
    async def ask(ctx: JobContext) -> str:
        found.extend(await bad_calls.faults_of(bad_calls_of(ctx)))
        return "done"

    @app.job()
    def ask_in_a_thread(ctx: SyncJobContext) -> str:
        found.extend(asyncio.run(bad_calls.faults_of(bad_calls_of(ctx))))
        return "done"

    jobs = [await job.enqueue() for job in (ask, ask_in_a_thread)]
    worker = await worker_of()
    await worker.drain()
    assert not found, "\n".join(found)
    for job in jobs:
        assert (await app.jobs.get(job.job_id)).detail == {"result": "done"}
    with database.connect() as observer:
        assert observer.execute("select count(*) from onecommit.callback").fetchone() == (0,)
    await healthy()


class Hostile:
    """Looks like a model, and its own code raises what no model should."""

    @classmethod
    def model_validate(cls, value: Any) -> "Hostile":
        raise LookupError(value)

    def model_dump(self, mode: str) -> Any:
        raise LookupError(mode)


async def test_a_model_whose_own_code_raises_fails_its_job_alone(app, worker_of, database, healthy):
    @app.job(name="read", max_attempts=1)
    async def read(ctx: JobContext, model: Hostile) -> None: ...

    @app.job(max_attempts=1)
    async def write(ctx: JobContext) -> Any:
        return Hostile()

    reading = enqueue_raw(database, "read", {"model": {}})
    writing = await write.enqueue()
    worker = await worker_of()
    await worker.drain()
    views = [await app.jobs.get(job) for job in (reading, writing.job_id)]
    assert views[1].code == "invalid_result"
    assert {view.state for view in views} <= {JobState.DEAD, JobState.SCHEDULED}
    assert JobState.RUNNING not in {view.state for view in views}
    await healthy()


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


async def test_a_result_nested_without_end_fails_its_job_alone(app, worker_of, healthy):
    @app.job(max_attempts=1)
    async def deep(ctx: JobContext) -> Any:
        return nested(100_000)

    job = await deep.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert (await app.jobs.get(job.job_id)).code == "invalid_result"
    await healthy()


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        GeneratorExit(),
        BaseException("bare"),
        StopIteration(),
        Unprintable(),
        ValueError("nul \0 and surrogate \ud800"),
        TimeoutError(),
        RecursionError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("flavour", ["at once", "after a wait", "in a thread"])
async def test_no_exception_of_a_handler_ends_the_worker(app, worker_of, healthy, error, flavour):
    @app.job(name="raise", max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        if flavour == "after a wait":
            await asyncio.sleep(0)
        raise error

    @app.job(name="raise in a thread", max_attempts=1)
    def fail_in_a_thread(ctx: SyncJobContext) -> None:
        raise error

    job = await (fail_in_a_thread if flavour == "in a thread" else fail).enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.code) == (JobState.DEAD, "handler_error")
    await healthy()


@pytest.mark.parametrize("when", ["at once", "later", "after a wait"])
@pytest.mark.parametrize("result", [None, 1], ids=["no_result", "result"])
async def test_a_cancellation_that_a_handler_leaves_behind_reaches_no_other_job(
    app, worker_of, healthy, when, result
):
    """Jobs that never wait share a task."""

    @app.job(max_attempts=1)
    async def leave(ctx: JobContext) -> int | None:
        if when == "after a wait":
            await asyncio.sleep(0)
        task = asyncio.current_task()
        if when == "later":
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            task.cancel()
        time.sleep(0.002)  # noqa: ASYNC251 - so that the shared task has held the loop for its turn
        return result

    @app.job(max_attempts=1)
    async def wait(ctx: JobContext) -> None:
        await asyncio.sleep(0)

    jobs = [await job.enqueue() for _ in range(5) for job in (leave, wait)]
    worker = await worker_of()
    await worker.drain()
    views = [await app.jobs.get(job.job_id) for job in jobs]
    assert {view.state for view in views} == {JobState.COMPLETED}
    await healthy()


async def test_a_cancellation_left_behind_does_not_keep_the_store_from_being_asked(
    app, worker_of, healthy
):
    @app.caller_owned_job(max_attempts=1)
    async def fail(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        asyncio.current_task().cancel()
        raise LookupError

    job = await fail.enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.code) == (JobState.DEAD, "handler_error")
    await healthy()


async def test_a_handler_that_swallows_its_cancellation_is_taken_at_its_word(app, worker_of):
    @app.job(timeout=timedelta(milliseconds=30))
    async def stubborn(ctx: JobContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"

    job = await stubborn.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert (await app.jobs.get(job.job_id)).detail == {"result": "done"}
