"""What follows a job is enqueued in the transaction that decides it, exactly once."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from onecommit.app.app import App
from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.domain.follow_up import JobTransition, Transition
from onecommit.domain.job import JobResult, JobState
from onecommit.domain.outcome import Cancel, Complete, Discard, RetryAfter, Snooze
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.domain.unique import Unique
from onecommit.errors import UsageError
from onecommit.telemetry.events import (
    AttemptFailed,
    AttemptUnrecorded,
    FollowUpFailed,
    FollowUpsUnknown,
    Reconnecting,
)

from tests.proxy import Proxy
from tests.worker.harness import eventually, start_worker
from tests.worker.trail import Trail

pytestmark = pytest.mark.pg

LATER = Retry(first=timedelta(hours=1))


@pytest.fixture
def trail(app) -> Trail:
    """Follow-ups stay in a queue that no worker of the test serves."""
    return Trail(app, queue="trail")


@pytest.fixture
def work_on(worker_of):
    """A worker for the queue `default` alone."""

    async def start(**settings):
        return await worker_of(queues={"default": 5}, **settings)

    return start


def follow_everything(job, trail) -> None:
    for transition in (job.on_retried, job.on_exhausted, job.on_cancelled, job.on_rescued):
        transition(trail)


async def test_a_completed_job_is_followed(app, work_on, trail):
    told = []

    @app.job()
    async def pay(ctx: JobContext, invoice: int, currency: str = "EUR") -> dict[str, int]:
        return {"paid": invoice}

    @pay.on_completed
    def tell(about: JobTransition):
        told.append(about)
        return [trail(about), trail(about)]

    @pay.on_completed
    def tell_nobody(about: JobTransition) -> None:
        return None

    follow_everything(pay, trail)
    job = await pay.enqueue(invoice=7)
    await (await work_on()).drain()

    assert await trail.of(job) == ["completed"] * 2
    assert told == [
        JobTransition(
            transition=Transition.COMPLETED,
            job_id=job.job_id,
            kind="pay",
            attempt=1,
            max_attempts=20,
            run_lease=1,
            arguments={"invoice": 7, "currency": "EUR"},
            result={"paid": 7},
        )
    ]
    assert (await app.jobs.get(job.job_id)).detail == {"result": {"paid": 7}}


async def test_a_handler_names_its_own_follow_ups(app, work_on, trail):
    @app.job()
    async def pay(ctx: JobContext) -> Complete:
        follow_ups = (trail.job.follow_up(what, job=ctx.job_id) for what in ("mail", "ledger"))
        return Complete({"paid": 1}, follow_ups=follow_ups)

    job = await pay.enqueue()
    await (await work_on()).drain()
    assert sorted(await trail.of(job)) == ["ledger", "mail"]
    assert (await app.jobs.get(job.job_id)).detail == {"result": {"paid": 1}}


async def test_follow_ups_run_like_any_job_with_their_own_options(app, worker_of):
    ran = []

    @app.job(queue="later")
    async def after(ctx: JobContext, n: int) -> None:
        ran.append((n, ctx.max_attempts))

    @app.job()
    async def first(ctx: JobContext, n: int) -> None: ...

    @first.on_completed
    def go_on(about: JobTransition):
        n = about.arguments["n"]
        return [after.options(max_attempts=2).follow_up(n), after.follow_up(n=n + 1)]

    await first.enqueue_many([{"n": 10 * n} for n in range(30)])
    worker = await worker_of()
    await worker.drain()
    await worker.drain()
    assert sorted(ran) == sorted(
        [(10 * n, 2) for n in range(30)] + [(10 * n + 1, 20) for n in range(30)]
    )


RAISES = RuntimeError("no")


@pytest.mark.parametrize(
    ("ends", "max_attempts", "noted"),
    [
        (RAISES, 2, ["retried"]),
        (RAISES, 1, ["exhausted"]),
        (RetryAfter(timedelta(hours=1)), 2, ["retried"]),
        (RetryAfter(timedelta(hours=1)), 1, ["exhausted"]),
        (Discard("no"), 2, ["exhausted"]),
        (Cancel("no"), 2, ["cancelled"]),
        (Snooze(timedelta(hours=1)), 2, []),
        (float("nan"), 2, ["retried"]),
    ],
    ids=str,
)
async def test_every_end_of_an_attempt_is_followed_by_its_own(
    app, work_on, trail, ends, max_attempts, noted
):
    @app.job(retry=LATER, max_attempts=max_attempts)
    async def pay(ctx: JobContext) -> Any:
        if isinstance(ends, Exception):
            raise ends
        return ends

    follow_everything(pay, trail)
    pay.on_completed(trail)
    job = await pay.enqueue()
    await (await work_on()).drain()
    assert await trail.of(job) == noted


async def test_a_job_with_undecodable_arguments_is_followed_too(app, work_on, trail):
    """The function gets the JSON values as they are."""
    told = []

    @app.job()
    async def pay(ctx: JobContext, invoice: int) -> None: ...

    @pay.on_exhausted
    def tell(about: JobTransition):
        told.append(about.arguments)
        return trail(about)

    async with await psycopg.AsyncConnection.connect(app.settings.dsn, autocommit=True) as raw:
        cursor = await raw.execute(
            "select job_ids[1] from onecommit.enqueue_jobs('default', '{pay}', array[%s], null, %s)",
            ('{"invoice": "seven"}', app.settings.epoch),
        )
        (job_id,) = await cursor.fetchone()
    await (await work_on()).drain()
    job = await app.jobs.get(job_id)
    assert (job.state, job.code) == (JobState.DEAD, "undecodable_arguments")
    assert await trail.of(job) == ["exhausted"]
    assert told == [{"invoice": "seven"}]


async def test_a_timeout_is_followed(app, work_on, trail):
    @app.job(timeout=timedelta(milliseconds=50), retry=LATER)
    async def pay(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    follow_everything(pay, trail)
    job = await pay.enqueue()
    worker = await work_on()
    await worker.drain()
    assert await trail.of(job) == ["retried"]


async def test_an_attempt_that_lost_brings_no_follow_up(app, work_on, events, trail):
    """Cancelled while it ran; the cancelling App knows the job and brings that follow-up instead."""
    started, release = asyncio.Event(), asyncio.Event()

    @app.job()
    async def pay(ctx: JobContext) -> None:
        started.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    follow_everything(pay, trail)
    pay.on_completed(trail)
    job = await pay.enqueue()
    worker = await work_on()
    await started.wait()
    assert await app.jobs.cancel(job.job_id, actor="a", reason="r") is JobResult.CANCELLED
    release.set()
    await worker.drain()
    assert await trail.of(job) == ["cancelled"]


async def test_a_lost_reply_enqueues_nothing_twice(app, events, trail, database):
    settings = app.settings
    async with (
        Proxy(database.dsn) as proxy,
        App(proxy.dsn, store_id=settings.store_id, epoch=settings.epoch) as proxied,
    ):
        through = Trail(proxied, queue="trail")

        @proxied.job()
        async def pay(ctx: JobContext, n: int) -> None: ...

        pay.on_completed(through)
        jobs = await pay.enqueue_many([{"n": n} for n in range(20)])
        proxy.lose_reply(containing=b"verdict")
        worker = await start_worker(proxied, events, queues={"default": 5})
        try:
            await worker.drain()
        finally:
            await worker.stop()
    assert proxy.lost.is_set()
    assert {e.operation for e in events.of(Reconnecting)} == {"close_with_follow_ups"}
    assert [await trail.of(job) for job in jobs] == [["completed"]] * 20


# --- functions and values that are wrong


WRONG = [
    "raises",
    "text",
    "mapping",
    "number",
    "none inside",
    "generator of numbers",
    "job of another App",
    "wrong type",
    "nul",
    "surrogate",
    "too large",
    "argument missing",
]


def wrong_follow_ups(wrong: str, note: Any, foreign: Any) -> Any:
    """What a function gives by mistake."""
    match wrong:
        case "raises":
            raise RuntimeError("no")
        case "text":
            return "note"
        case "mapping":
            return {"what": "x"}
        case "number":
            return 5
        case "none inside":
            return [None]
        case "generator of numbers":
            return (number for number in (1, 2))
        case "job of another App":
            return foreign.follow_up()
        case "argument missing":
            return note.follow_up()
        case _:
            what = {
                "wrong type": 5,
                "nul": "\0",
                "surrogate": "\ud800",
                "too large": "x" * 2_000_000,
            }
            return note.follow_up(what=what[wrong], job=1)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("by", ["function", "handler"])
async def test_a_completion_whose_follow_ups_fail_is_a_failed_attempt(
    app, work_on, events, trail, wrong, by
):
    """Nothing is half written, the retry has its own follow-ups, and the worker goes on."""
    other_app = App("host=192.0.2.1")

    @other_app.job()
    async def other(ctx: JobContext) -> None: ...

    @app.job(retry=LATER)
    async def pay(ctx: JobContext) -> Any:
        if by == "handler":
            return Complete(
                follow_ups=[
                    trail.job.follow_up("x", ctx.job_id),
                    *as_list(wrong_follow_ups(wrong, trail.job, other)),
                ]
            )
        return None

    @app.job()
    async def well(ctx: JobContext) -> None: ...

    if by == "function":
        pay.on_completed(trail)
        pay.on_completed(lambda _: wrong_follow_ups(wrong, trail.job, other))
    pay.on_retried(trail)
    well.on_completed(trail)
    job, beside = await pay.enqueue(), await well.enqueue()
    await (await work_on()).drain()

    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)
    assert await trail.of(job) == ["retried"]
    assert await trail.of(beside) == ["completed"]
    code = events.of(AttemptFailed)[0].code
    assert code in (
        ("follow_up_error",) if by == "function" else ("follow_up_error", "handler_error")
    )


def as_list(found: Any) -> Any:
    return found if isinstance(found, (list, tuple)) or hasattr(found, "__next__") else [found]


@pytest.mark.parametrize("transition", ["on_retried", "on_exhausted", "on_cancelled"])
async def test_any_other_transition_stands_without_its_follow_ups(
    app, work_on, events, trail, transition
):
    ends = {"on_cancelled": Cancel("no"), "on_exhausted": Discard("no")}

    @app.job(retry=LATER)
    async def pay(ctx: JobContext) -> Any:
        return ends.get(transition, RetryAfter(timedelta(hours=1)))

    getattr(pay, transition)(trail)
    getattr(pay, transition)(lambda _: 1 / 0)
    job = await pay.enqueue()
    await (await work_on()).drain()
    assert await trail.of(job) == []
    [failed] = events.of(FollowUpFailed)
    assert (failed.job, f"on_{failed.transition}", failed.failure) == (
        job.job_id,
        transition,
        "ZeroDivisionError",
    )
    expected = {"on_cancelled": JobState.CANCELLED, "on_exhausted": JobState.DEAD}
    assert (await app.jobs.get(job.job_id)).state == expected.get(transition, JobState.SCHEDULED)


async def test_follow_ups_that_the_store_refuses_fail_their_completion_alone(
    app, work_on, events, trail, database
):
    """A queue that gets no lane: the batch goes on without that one."""

    @app.job(retry=LATER)
    async def pay(ctx: JobContext, n: int) -> None: ...

    @pay.on_completed
    def to_a_new_queue(about: JobTransition):
        to = trail.job.options(queue="no lane for this") if about.arguments["n"] == 3 else trail.job
        return to.follow_up("completed", about.job_id)

    await trail.job.enqueue("adopts its lane", 0)
    jobs = await pay.enqueue_many([{"n": n} for n in range(6)])
    worker = await work_on()
    await fill_lanes(database)
    try:
        await worker.drain()
    finally:
        await free_lanes(database)
    noted = [await trail.of(job) for job in jobs]
    assert noted == [["completed"]] * 3 + [[]] + [["completed"]] * 2
    view = await app.jobs.get(jobs[3].job_id)
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)
    assert [(e.job, e.code, e.failure) for e in events.of(AttemptFailed)] == [
        (jobs[3].job_id, "follow_up_error", "LanesExhausted")
    ]
    assert not events.of(AttemptUnrecorded)


async def fill_lanes(database) -> None:
    async with await psycopg.AsyncConnection.connect(database.observer_dsn, autocommit=True) as raw:
        await raw.execute(
            "insert into onecommit.queue (queue) values ('filler') on conflict do nothing"
        )
        await raw.execute(
            "update onecommit.lane set queue = 'filler', priority = 1, shard = lane"
            " where queue is null and lane <> 0"
        )


async def free_lanes(database) -> None:
    async with await psycopg.AsyncConnection.connect(database.observer_dsn, autocommit=True) as raw:
        await raw.execute(
            "update onecommit.lane set queue = null, priority = null, shard = 0 where queue = 'filler'"
        )


# --- rescue and cancellation


async def abandoned(app, job, *, queue) -> None:
    """Claim the job as a worker that dies at once."""
    async with await psycopg.AsyncConnection.connect(app.settings.dsn, autocommit=True) as raw:
        epoch = app.settings.epoch
        cursor = await raw.execute("select onecommit.register_worker('w', '{}', %s)", (epoch,))
        (worker,) = await cursor.fetchone()
        cursor = await raw.execute(
            "select job_ids from onecommit.claim_jobs(%s, 1, %s, 1, null, null, %s)",
            (worker, queue, epoch),
        )
        assert (await cursor.fetchone())[0] == [job.job_id]
        await raw.execute("select onecommit.retire_worker(%s, %s)", (worker, epoch))


@pytest.mark.parametrize(("max_attempts", "noted"), [(2, "rescued"), (1, "exhausted")])
async def test_a_rescue_is_followed_by_whoever_leads(app, worker_of, trail, max_attempts, noted):
    queue = f"lost and {noted}"

    @app.job(queue=queue, max_attempts=max_attempts)
    async def pay(ctx: JobContext) -> None: ...

    follow_everything(pay, trail)
    job = await pay.enqueue()
    await abandoned(app, job, queue=queue)
    await worker_of(queues={"default": 1})

    async def is_noted() -> bool:
        return await trail.of(job) == [noted]

    await eventually(is_noted, what="the follow-up of the rescue")


async def test_a_rescue_stands_when_a_follow_up_fails(app, worker_of, events, trail):
    @app.job(queue="lost with a failure")
    async def pay(ctx: JobContext, ok: bool) -> None: ...

    pay.on_rescued(lambda about: trail(about) if about.arguments["ok"] else 1 / 0)
    jobs = []
    for ok in (True, False, True):
        jobs.append(await pay.enqueue(ok=ok))
        await abandoned(app, jobs[-1], queue="lost with a failure")
    await worker_of(queues={"default": 1})
    failed = await events.wait_for(FollowUpFailed)
    assert (failed.job, failed.transition) == (jobs[1].job_id, "rescued")
    assert [await trail.of(job) for job in jobs] == [["rescued"], [], ["rescued"]]
    assert {(await app.jobs.get(job.job_id)).attempt for job in jobs} == {1}


async def test_a_leader_says_which_kinds_it_does_not_know(app, worker_of, events):
    """Once for each kind: it cannot know whether anything follows."""
    settings = app.settings
    async with App(settings.dsn, store_id=settings.store_id, epoch=settings.epoch) as elsewhere:

        @elsewhere.job(queue="lost elsewhere")
        async def foreign(ctx: JobContext) -> None: ...

        jobs = []
        for _ in range(2):
            jobs.append(await foreign.enqueue())
            await abandoned(app, jobs[-1], queue="lost elsewhere")
    await worker_of(queues={"default": 1})
    event = await events.wait_for(FollowUpsUnknown)
    assert event == FollowUpsUnknown(kind="foreign", transition="rescued")
    assert len(events.of(FollowUpsUnknown)) == 1


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("state", ["ready", "scheduled"])
async def test_a_cancellation_is_followed_in_its_transaction(app, trail, sync, state):
    @app.job()
    async def pay(ctx: JobContext, n: int) -> None: ...

    pay.on_cancelled(trail)
    delay = timedelta(hours=1) if state == "scheduled" else None
    job = await pay.options(delay=delay).enqueue(n=1)
    for expected in (JobResult.CANCELLED, JobResult.ALREADY_FINISHED):
        if sync:
            cancelled = await asyncio.to_thread(
                app.sync.jobs.cancel, job.job_id, actor="a", reason="r"
            )
        else:
            cancelled = await app.jobs.cancel(job.job_id, actor="a", reason="r")
        assert cancelled is expected
    assert await trail.of(job) == ["cancelled"]
    app.sync.close()


async def test_a_cancellation_stands_when_the_store_refuses_a_follow_up(
    app, trail, caplog, database
):
    """It is taken back alone, and said."""

    @app.job()
    async def pay(ctx: JobContext, n: int) -> None: ...

    @pay.on_cancelled
    def follow(about: JobTransition):
        to = trail.job.options(queue="no lane for it") if about.arguments["n"] == 1 else trail.job
        return [trail.job.follow_up("first", about.job_id), to.follow_up("second", about.job_id)]

    await trail.job.enqueue("adopts its lane", 0)
    jobs = await pay.enqueue_many([{"n": n} for n in range(3)])
    await fill_lanes(database)
    try:
        results = await app.jobs.cancel_many([job.job_id for job in jobs], actor="a", reason="r")
    finally:
        await free_lanes(database)
    assert set(results.values()) == {JobResult.CANCELLED}
    noted = [sorted(await trail.of(job)) for job in jobs]
    assert noted == [["first", "second"], [], ["first", "second"]]
    assert "attempt.follow_up_failed" in caplog.text


async def test_whoever_cancels_a_job_that_it_does_not_know_is_told(app, trail, caplog):
    @app.job()
    async def pay(ctx: JobContext) -> None: ...

    pay.on_cancelled(trail)
    job = await pay.enqueue()
    settings = app.settings
    async with App(settings.dsn, store_id=settings.store_id, epoch=settings.epoch) as elsewhere:
        await elsewhere.jobs.cancel(job.job_id, actor="a", reason="r")
    assert "follow_up.unknown_kind kind=pay transition=cancelled" in caplog.text
    assert await trail.of(job) == []


# --- caller-owned jobs


async def test_what_the_executor_decides_about_a_caller_owned_job_is_followed(app, work_on, trail):
    """Its completion is the caller's; a retry or the dead letters are ours."""

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext, how: str) -> FinalizationReceipt:
        if how == "raise":
            raise RuntimeError("no")
        return None

    follow_everything(settle, trail)
    raised, forgot = await settle.enqueue(how="raise"), await settle.enqueue(how="forget")
    await (await work_on()).drain()
    assert await trail.of(raised) == ["retried"]
    assert await trail.of(forgot) == ["exhausted"]


async def test_a_caller_owned_job_that_committed_is_followed_by_nothing(
    app, work_on, trail, database
):
    """Not by the error that its handler raised afterwards."""

    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        async with (
            await psycopg.AsyncConnection.connect(database.dsn) as connection,
            connection.transaction(),
        ):
            await ctx.complete_in_tx(connection)
        raise RuntimeError("too late")

    follow_everything(settle, trail)
    job = await settle.enqueue()
    await (await work_on()).drain()
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED
    assert await trail.of(job) == []


# --- registration


async def test_a_worker_refuses_follow_ups_for_a_job_that_nobody_registered(app, worker_of):
    """A misspelt name is found at the start."""
    app.follow_up("pya", Transition.COMPLETED)(lambda _: None)

    @app.job()
    async def pay(ctx: JobContext) -> None: ...

    with pytest.raises(UsageError, match="pya"):
        await worker_of()


async def test_a_job_that_uses_none_is_completed_in_the_batch(app, work_on, trail, events):
    """Beside those that do: the other call is not made for it."""
    calls = []

    @app.job()
    async def plain(ctx: JobContext) -> None: ...

    worker = await work_on()
    completer = worker._machinery.completer
    original = completer._insistence.run

    async def seen(call):
        calls.append(call.routine.name)
        return await original(call)

    completer._insistence.run = seen
    await plain.enqueue_many([{}] * 50)
    await worker.drain()
    assert "close_with_follow_ups" not in calls
    assert "complete_jobs" in calls


async def test_progress_and_unique_keys_end_with_the_job(app, work_on, trail, database):
    @app.job(unique=Unique(by=("n",)))
    async def pay(ctx: JobContext, n: int) -> None:
        ctx.set_progress({"half": True})

    pay.on_completed(trail)
    job = await pay.enqueue(n=1)
    worker = await work_on()
    await worker.drain()
    await worker.stop()
    assert await trail.of(job) == ["completed"]
    again = await pay.enqueue(n=1)
    assert again.created
    with database.connect() as observer:
        assert observer.execute("select count(*) from onecommit.progress").fetchone() == (0,)
    await app.jobs.cancel(again.job_id, actor="a", reason="r")
