"""Enqueueing on the App's own connections."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from onecommit import App, InvalidArgument, JobContext, JobState, OnParentFailure, Unique
from onecommit.app.enqueue_plan import CHUNK
from onecommit.app.job import Job
from onecommit.errors import EpochFenced, SchemaMissing, UsageError

from tests.clusters import Database
from tests.strict import StrictDatabase

pytestmark = pytest.mark.pg


@pytest.fixture
def send(app: App) -> Job:
    """A job with a required and an optional argument."""

    @app.job(queue="email")
    async def send(ctx: JobContext, to: str, subject: str = "none") -> None: ...

    return send


async def test_a_job_arrives_as_it_was_enqueued(app: App, send: Job):
    enqueued = await send.enqueue("a@example.com", subject="Hi")
    assert enqueued.created
    job = await app.jobs.get(enqueued.job_id)
    assert job is not None
    assert (job.state, job.queue, job.kind, job.priority) == (JobState.READY, "email", "send", 2)
    assert (job.attempt, job.max_attempts) == (0, 20)
    assert job.args == {"to": "a@example.com", "subject": "Hi"}


async def test_the_sync_twin_does_the_same(app: App, send: Job):
    enqueued = await asyncio.to_thread(send.sync.enqueue, "a", subject="b")
    many = await asyncio.to_thread(send.sync.enqueue_many, [{"to": "c"}, {"to": "d"}])
    jobs = [await app.jobs.get(job.job_id) for job in (enqueued, *many)]
    assert [job.args["to"] for job in jobs if job] == ["a", "c", "d"]
    assert await asyncio.to_thread(app.sync.jobs.get, enqueued.job_id) == jobs[0]


async def test_options_travel_with_the_job(app: App, send: Job):
    run_at = datetime(2100, 1, 1, tzinfo=UTC)
    options = send.options(
        run_at=run_at,
        priority=1,
        max_attempts=3,
        queue="slow",
        timeout=timedelta(minutes=2),
        tags=["invoice", "é"],
    )
    job = await app.jobs.get((await options.enqueue(to="a")).job_id)
    assert job is not None
    assert (job.state, job.queue, job.priority, job.max_attempts) == (
        JobState.SCHEDULED,
        "slow",
        1,
        3,
    )
    assert job.run_at == run_at
    assert job.options == {"timeout_us": 120_000_000, "tags": ["invoice", "é"]}


async def test_a_delay_counts_from_the_clock_of_the_database(app: App, send: Job):
    enqueued = await send.options(delay=timedelta(hours=1)).enqueue(to="a")
    job = await app.jobs.get(enqueued.job_id)
    assert job is not None
    assert job.run_at == job.created_at + timedelta(hours=1)


async def test_the_definition_s_settings_are_the_defaults(app: App):
    @app.job(priority=3, max_attempts=2)
    async def rare(ctx: JobContext) -> None: ...

    job = await app.jobs.get((await rare.enqueue()).job_id)
    assert (job.priority, job.max_attempts) == (3, 2)
    job = await app.jobs.get((await rare.options(priority=2, max_attempts=20).enqueue()).job_id)
    assert (job.priority, job.max_attempts) == (2, 20)


async def test_a_second_job_that_is_the_same_is_told_who_is_first(send: Job):
    unique = send.options(unique=Unique(by=("to",)))
    first = await unique.enqueue(to="a", subject="1")
    second = await unique.enqueue(to="a", subject="2")
    other = await unique.enqueue(to="b")
    assert (first.created, second.created, other.created) == (True, False, True)
    assert second.job_id == first.job_id != other.job_id


async def test_an_argument_left_to_its_default_is_the_same_as_the_default(send: Job):
    unique = send.options(unique=Unique(by=("subject",)))
    first = await unique.enqueue(to="a")
    assert await unique.enqueue(to="b", subject="none") == first.__class__(
        first.job_id, created=False
    )


async def test_a_bulk_of_unique_jobs_tells_each_one(send: Job):
    items = [{"to": to} for to in "abab"]
    jobs = await send.options(unique=Unique(by=("to",))).enqueue_many(items)
    assert [job.created for job in jobs] == [True, True, False, False]
    assert [job.job_id for job in jobs[2:]] == [job.job_id for job in jobs[:2]]


async def test_a_bulk_is_larger_than_one_statement(app: App, send: Job):
    jobs = await send.enqueue_many({"to": str(number)} for number in range(CHUNK + 7))
    assert len({job.job_id for job in jobs}) == CHUNK + 7
    last = await app.jobs.get(jobs[-1].job_id)
    assert last.args == {"to": str(CHUNK + 6)}
    (queue,) = await app.queues.list()
    assert queue.ready == CHUNK + 7


async def test_one_bad_item_stops_the_whole_bulk(app: App, send: Job):
    """Also when earlier statements of the same bulk have been sent."""
    items = [{"to": "a"}] * (CHUNK + 3) + [{"to": 5}]
    with pytest.raises(InvalidArgument, match="job 3: `to`: expected `str`"):
        await send.enqueue_many(items)
    assert await app.queues.list() == []


async def test_an_empty_bulk_is_no_job(app: App, send: Job):
    assert await send.enqueue_many([]) == []
    assert await app.queues.list() == []


@pytest.mark.parametrize(
    ("positional", "named", "problem"),
    [
        ((), {}, "`to` is missing"),
        ((5,), {}, "`to`: expected `str`"),
        (("a", "b", "c"), {}, "takes 2 arguments"),
        (("a",), {"to": "b"}, "`to` is given twice"),
        ((), {"to": "a", "cc": "b"}, "`cc` is not an argument"),
        (("a\0b",), {}, "NUL"),
        (("\ud800",), {}, "lone surrogate"),
        (("x" * 10_000_000,), {}, "bytes of JSON"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
async def test_bad_arguments_are_refused_and_nothing_is_written(
    app: App, send: Job, positional, named, problem
):
    with pytest.raises(InvalidArgument, match=problem):
        await send.enqueue(*positional, **named)
    assert await app.queues.list() == []


async def test_a_queue_is_made_by_its_first_job_whatever_its_name(app: App, send: Job):
    name = "ünïcode \"quoted\" 'q' \\ {a,b} %s $1"
    enqueued = await send.options(queue=name).enqueue(to="a")
    assert (await app.jobs.get(enqueued.job_id)).queue == name


def test_a_missing_dsn_says_how_to_set_it(monkeypatch):
    monkeypatch.delenv("ONECOMMIT_DSN", raising=False)
    with pytest.raises(UsageError, match="ONECOMMIT_DSN"):
        App().sync.queues.list()


async def test_the_environment_names_the_store(database: StrictDatabase, monkeypatch):
    for name, value in database.environment().items():
        monkeypatch.setenv(name, value)
    async with App() as app:
        assert await app.queues.list() == []
    monkeypatch.setenv("ONECOMMIT_EPOCH", "3")
    with pytest.raises(EpochFenced):
        await App().queues.list()


async def test_a_database_without_the_schema_says_how_to_install_it(empty_database: Database):
    with pytest.raises(SchemaMissing, match="onecommit migrate"):
        await App(empty_database.dsn).queues.list()


def test_an_app_works_in_one_event_loop_after_another(database: StrictDatabase):
    """As a script with several asyncio.run() does."""
    app = App(database.dsn, **database.identity)

    @app.job()
    async def send(ctx: JobContext) -> None: ...

    async def once() -> int:
        async with app:
            return (await send.enqueue()).job_id

    assert asyncio.run(once()) != asyncio.run(once())


async def test_callers_that_start_together_share_the_connections(database: StrictDatabase):
    app = App(database.dsn, **database.identity, max_connections=3)

    @app.job()
    async def send(ctx: JobContext) -> None: ...

    jobs = await asyncio.gather(*[send.enqueue() for _ in range(20)])
    assert len({job.job_id for job in jobs}) == 20
    assert len((await app._stores.async_store())._idle) <= 3
    await app.close()


# --- dependants ---


@pytest.mark.parametrize("rule", [None, "discard", OnParentFailure.ENQUEUE])
async def test_a_dependant_is_blocked_until_its_parent_has_ended(app: App, send: Job, rule):
    parent = await send.enqueue(to="a")
    later = send.options(after=parent.job_id, on_parent_failure=rule)
    jobs = [await later.enqueue(to="b"), *await later.enqueue_many([{"to": "c"}, {"to": "d"}])]
    listed = await app.jobs.list(state=JobState.BLOCKED)
    assert {job.job_id for job in listed} == {job.job_id for job in jobs}
    assert {job.parent_id for job in listed} == {parent.job_id}
    (queue,) = await app.queues.list()
    assert (queue.ready, queue.blocked) == (1, 3)
    await app.jobs.cancel(parent.job_id, actor="a", reason="r")
    ended = {None: JobState.CANCELLED, "discard": JobState.DEAD}.get(rule, JobState.READY)
    for job in jobs:
        assert (await app.jobs.get(job.job_id)).state is ended


async def test_an_unknown_parent_is_refused_by_the_store(app: App, send: Job):
    with pytest.raises(InvalidArgument, match="after: there is no such job"):
        await send.options(after=10**15).enqueue(to="a")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"after": 0}, "after"),
        ({"after": "1"}, "after"),
        ({"after": True}, "after"),
        ({"on_parent_failure": "cancel"}, "on_parent_failure"),
        ({"after": 1, "on_parent_failure": "retry"}, "on_parent_failure"),
    ],
)
async def test_what_makes_no_dependant_is_refused_at_once(send: Job, options, field: str):
    with pytest.raises(InvalidArgument) as refused:
        send.options(**options)
    assert refused.value.field == field
