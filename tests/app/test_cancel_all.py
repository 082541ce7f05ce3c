"""Cancelling all jobs of a queue, a kind, some tags or states: in small transactions, with a true answer for each."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from onecommit import App, InvalidArgument, JobContext, JobResult, JobState, OnParentFailure
from onecommit.app import async_client
from onecommit.app.job import Job
from onecommit.calls.attempts import claim_jobs, finish_jobs
from onecommit.calls.workers import register_worker
from onecommit.domain.attempt import Attempt
from onecommit.domain.closing import Finish
from onecommit.domain.job import Outcome
from onecommit.domain.worker import WorkerInfo
from onecommit.store.async_store import AsyncStoreTransaction

from tests import observe
from tests.strict import StrictDatabase

pytestmark = pytest.mark.pg

WHO = {"actor": "ada", "reason": "imported twice"}
HOUR = timedelta(hours=1)
WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
ACTIONS = (
    "select subject from onecommit.operator_action where action = 'cancel_jobs' order by action_id"
)


@pytest.fixture
def send(app: App) -> Job:
    @app.job(queue="email")
    async def send(ctx: JobContext, to: str) -> None: ...

    return send


@pytest.fixture
def pages_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_client, "_FIRST_PAGE", 2)
    monkeypatch.setattr(async_client, "_LARGEST_PAGE", 2)


async def enqueue(job: Any, count: int = 1) -> list[int]:
    return [each.job_id for each in await job.enqueue_many([{"to": "a"}] * count)]


async def claim(app: App) -> tuple[Attempt, ...]:
    store = await app._stores.async_store()
    info = WorkerInfo(host="h", pid=1, version="0", queues=("email",))
    worker = await store.run(register_worker("w", info, epoch=store.epoch))
    call = claim_jobs(
        "email", worker=worker, request=1, limit=9, lifetime_us=None, sleep=False, epoch=store.epoch
    )
    return (await store.run(call)).attempts


async def fail(app: App, transaction: AsyncStoreTransaction, attempt: Attempt) -> None:
    store = await app._stores.async_store()
    finish = Finish(attempt=attempt, outcome=Outcome.FAILED, code="handler_error", detail="{}")
    assert await transaction.run(finish_jobs([finish], epoch=store.epoch)) == []


async def see(holds: Callable[[], Awaitable[bool]], *, what: str) -> None:
    for _ in range(int(observe.PATIENCE_SECONDS / observe.PAUSE_SECONDS)):
        if await holds():
            return
        await asyncio.sleep(observe.PAUSE_SECONDS)
    raise AssertionError(f"not seen: {what}")


async def states(app: App) -> Counter[JobState]:
    return Counter(job.state for job in await app.jobs.list(limit=1000))


async def test_what_is_given_must_all_hold(app: App, send: Job):
    """Queue, kind, tags and states; what is left out may be anything."""
    tags = ("import", "monday")
    [wanted] = await enqueue(send.options(tags=tags))
    [other_queue] = await enqueue(send.options(tags=tags, queue="other"))
    [other_tags] = await enqueue(send.options(tags=("import",)))
    [later] = await enqueue(send.options(tags=tags, delay=HOUR))
    given = {"queue": "email", "kind": "send", "tags": ["monday"]}
    assert await app.jobs.cancel_all(**given, states=[JobState.READY], **WHO) == {
        wanted: JobResult.CANCELLED
    }
    assert await app.jobs.cancel_all(**given, **WHO) == {later: JobResult.CANCELLED}
    assert await app.jobs.cancel_all(kind="nobody", **WHO) == {}
    assert app.sync.jobs.cancel_all(queue="email", **WHO) == {other_tags: JobResult.CANCELLED}
    assert (await app.jobs.get(other_queue)).state is JobState.READY


async def test_each_page_is_a_transaction_of_its_own(
    app: App, send: Job, database: StrictDatabase, pages_of_two: None
):
    """From the newest to the oldest, up to the limit, each kept with its actor and reason."""
    ids = await enqueue(send, 7)
    results = await app.jobs.cancel_all(queue="email", limit=5, **WHO)
    assert results == dict.fromkeys(ids[2:], JobResult.CANCELLED)
    assert transactions(database) == [ids[5:], ids[3:5], ids[2:3]]
    assert set((await app.jobs.cancel_all(queue="email", **WHO)).values()) == {JobResult.CANCELLED}
    assert await states(app) == {JobState.CANCELLED: 7}


@pytest.mark.parametrize(("long", "sizes"), [(3600.0, [2, 4, 5, 1]), (0.0, [2, 1, 1, 1])])
async def test_a_page_that_took_long_is_followed_by_a_smaller_one(
    app: App, send: Job, database: StrictDatabase, monkeypatch: pytest.MonkeyPatch,
    long: float, sizes: list[int],
):  # fmt: skip
    """So that no transaction holds its locks for long; otherwise they grow up to the largest."""
    monkeypatch.setattr(async_client, "_FIRST_PAGE", 2)
    monkeypatch.setattr(async_client, "_LARGEST_PAGE", 5)
    monkeypatch.setattr(async_client, "_LONG", long)
    await enqueue(send, 12)
    await app.jobs.cancel_all(queue="email", limit=sum(sizes), **WHO)
    assert list(map(len, transactions(database))) == sizes


async def test_a_preview_does_nothing(app: App, send: Job, pages_of_two: None):
    ids = await enqueue(send, 3)
    results = await app.jobs.cancel_all(queue="email", preview=True, **WHO)
    assert results == dict.fromkeys(ids, JobResult.PREVIEW)
    assert await states(app) == {JobState.READY: 3}


async def test_a_job_that_ends_meanwhile_is_answered_as_such(
    app: App, send: Job, database: StrictDatabase
):
    """It was found while it ran; its end, which has not committed then, is waited for and counts."""
    await enqueue(send, 3)
    first, ending, last = await claim(app)
    store = await app._stores.async_store()
    async with asyncio.TaskGroup() as group, store.transaction() as transaction:
        await fail(app, transaction, ending)
        cancelling = group.create_task(app.jobs.cancel_all(queue="email", **WHO))
        await see(lambda: waits(database, 1), what="the cancellation waits for the end")
    assert cancelling.result() == {
        first.job_id: JobResult.CANCELLED,
        ending.job_id: JobResult.ALREADY_FINISHED,
        last.job_id: JobResult.CANCELLED,
    }
    assert await states(app) == {JobState.DEAD: 1, JobState.CANCELLED: 2}


async def test_two_at_once_do_not_deadlock(app: App, send: Job, database: StrictDatabase):
    """Over the same jobs and their dependants; each job is cancelled by one of them."""
    parents = await enqueue(send, 3)
    for parent in parents:
        await enqueue(send.options(after=parent))
        await enqueue(send.options(after=parent, on_parent_failure=OnParentFailure.ENQUEUE))
    _, held, _ = await claim(app)
    store = await app._stores.async_store()
    async with asyncio.TaskGroup() as group, store.transaction() as transaction:
        await fail(app, transaction, held)
        ours = group.create_task(app.jobs.cancel_all(queue="email", **WHO))
        theirs = group.create_task(app.jobs.cancel_all(kind="send", **WHO))
        await see(lambda: waits(database, 2), what="both wait")
    cancelled = Counter(
        job for task in (ours, theirs) for job, result in task.result().items() if result is JobResult.CANCELLED
    )  # fmt: skip
    assert set(cancelled.values()) == {1}
    assert held.job_id not in cancelled
    left = await app.jobs.cancel_all(kind="send", **WHO)
    assert (await states(app)).keys() <= {JobState.CANCELLED, JobState.DEAD}, left


def transactions(database: StrictDatabase) -> list[list[int]]:
    """The jobs of each, in the order in which they committed."""
    with database.connect() as owner:
        return [sorted(map(int, subject.split(","))) for (subject,) in owner.execute(ACTIONS)]


async def waits(database: StrictDatabase, count: int) -> bool:
    async with await psycopg.AsyncConnection.connect(database.observer_dsn) as observer:
        row = await (await observer.execute(WAITING)).fetchone()
    return row[0] >= count


@pytest.mark.parametrize("given", [{}, {"tags": []}, {"states": []}])
async def test_a_selection_that_is_none_is_refused(app: App, send: Job, given: dict[str, Any]):
    """Before anything is cancelled."""
    await enqueue(send)
    with pytest.raises(InvalidArgument, match="nothing says which jobs"):
        await app.jobs.cancel_all(**given, **WHO)
    assert await states(app) == {JobState.READY: 1}


async def test_an_empty_name_is_no_leave_to_take_all(app: App, send: Job):
    await enqueue(send)
    assert await app.jobs.cancel_all(queue="", kind="send", **WHO) == {}
