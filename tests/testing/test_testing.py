"""What `onecommit.testing` gives to the tests of an application."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from onecommit import (
    App,
    CallerOwnedJobContext,
    FinalizationReceipt,
    JobContext,
    JobState,
    Retry,
    Safety,
    SyncJobContext,
    WorkInvocation,
)
from onecommit.app.job import Job
from onecommit.calls.attempts import claim_jobs
from onecommit.calls.workers import register_worker
from onecommit.domain.worker import WorkerInfo
from onecommit.errors import TransactionRequired
from onecommit.testing import JobsFailed, discard_jobs, enqueued, run_jobs, temporary_store

from tests.strict import StrictDatabase, database

__all__ = ["database"]

pytestmark = pytest.mark.pg


@pytest.fixture
async def app(database: StrictDatabase) -> AsyncIterator[App]:
    async with App(database.dsn, **database.identity) as opened:
        yield opened


@pytest.fixture
def send(app: App) -> Job:
    @app.job(queue="email")
    async def send(ctx: JobContext, to: str) -> None: ...

    return send


@pytest.fixture
def other(app: App) -> Job:
    @app.job(queue="email")
    async def other(ctx: JobContext) -> None: ...

    return other


async def test_what_an_open_transaction_has_enqueued_is_seen(
    send: Job, other: Job, database: StrictDatabase
):
    """With its arguments, in order, wherever it goes; another kind is not, nor is anything after the rollback."""
    later = send.options(queue="slow", delay=timedelta(hours=1))
    async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
        await send.in_tx(connection).enqueue(to="ada")
        await later.in_tx(connection).enqueue(to="bob")
        await other.in_tx(connection).enqueue()
        found = await enqueued(send, connection)
        assert [(job.args, job.queue, job.state) for job in found] == [
            ({"to": "ada"}, "email", JobState.READY),
            ({"to": "bob"}, "slow", JobState.SCHEDULED),
        ]
        await connection.rollback()
        assert await enqueued(send, connection) == []


async def test_a_sync_connection_is_looked_through_without_awaiting(
    send: Job, database: StrictDatabase
):
    with psycopg.connect(database.dsn) as connection:
        send.in_tx(connection).enqueue(to="ada")
        [job] = enqueued(send, connection)
        assert job.args == {"to": "ada"}
        connection.rollback()


async def test_what_has_ended_is_not_seen(app: App, send: Job, database: StrictDatabase):
    job = await send.enqueue(to="ada")
    with psycopg.connect(database.dsn) as connection:
        assert [each.job_id for each in enqueued(send, connection)] == [job.job_id]
        await run_jobs(app)
        assert enqueued(send, connection) == []


async def test_looking_without_a_transaction_is_refused_as_every_call_is(
    send: Job, database: StrictDatabase
):
    with (
        psycopg.connect(database.dsn, autocommit=True) as connection,
        pytest.raises(TransactionRequired),
    ):
        enqueued(send, connection)


async def test_jobs_are_run_until_nothing_is_left(app: App):
    """What a job enqueues runs too; what is due later stays."""
    ran = []

    @app.job(queue="second")
    async def second(ctx: JobContext) -> None:
        ran.append("second")

    @app.job(queue="first")
    async def first(ctx: JobContext) -> None:
        ran.append("first")
        await second.enqueue()

    await first.enqueue()
    later = await second.options(delay=timedelta(hours=1)).enqueue()
    await run_jobs(app)
    assert ran == ["first", "second"]
    assert (await app.jobs.get(later.job_id)).state is JobState.SCHEDULED


async def test_a_handler_that_raises_fails_the_test_with_its_words_and_its_place(app: App):
    """Each attempt that failed, whatever became of its job; the message is for the test alone, not for the log."""

    @app.job(retry=Retry(first=timedelta(hours=1)))
    async def send(ctx: JobContext, to: str) -> None:
        raise ValueError(f"no such address: {to}")

    @app.job(max_attempts=1)
    def sell(ctx: SyncJobContext) -> object:
        return object()

    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        return None

    await send.enqueue(to="ada")
    await sell.enqueue()
    await settle.enqueue()
    with pytest.raises(JobsFailed) as failed:
        await run_jobs(app)
    head, *said = str(failed.value).splitlines()
    assert head == "3 attempts failed:"
    [sent, sold, settled] = sorted(said, key=lambda line: re.search(r"job=(\d+)", line)[1])
    assert re.search(r"kind=send .* frames=.*test_testing.py:.* send: ValueError: no such", sent)
    assert re.search(r"kind=sell .* code=invalid_result .*: `result` holds a value that JSON", sold)
    assert re.search(r"no_receipt .* kind=settle .*\. Return what ctx.complete_in_tx", settled)


async def test_each_attempt_that_failed_is_named_with_no_words_but_its_own(app: App):
    """The store keeps those of the last one."""

    @app.job(retry=Retry(first=timedelta(0)), max_attempts=2)
    async def send(ctx: JobContext) -> None:
        raise ValueError(f"no luck the {ctx.attempt}. time")

    await send.enqueue()
    with pytest.raises(JobsFailed) as failed:
        await run_jobs(app)
    _, first, second = str(failed.value).splitlines()
    assert "attempt=1" in first
    assert "luck" not in first
    assert "attempt=2" in second
    assert second.endswith(": ValueError: no luck the 2. time")


async def test_an_executor_that_raises_fails_the_test_too(app: App):
    charge = app.work("charge", version="1", payload=int, result=int, safety=Safety.IDEMPOTENT)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: int) -> int:
        raise ConnectionError

    await charge.accept(1, scope="shop", command_id="c", idempotency_key="k")
    with pytest.raises(JobsFailed, match=r"work=1 contract=charge/1 .*=ConnectionError .* run$"):
        await run_jobs(app)


async def test_no_job_is_left_after_they_are_discarded(app: App, send: Job, other: Job):
    """Ready, running, scheduled, blocked by another, dead: the next test does not meet them."""

    @app.job(max_attempts=1)
    async def dies(ctx: JobContext) -> None:
        raise ValueError

    await dies.enqueue()
    with pytest.raises(JobsFailed):
        await run_jobs(app)
    await send.enqueue(to="ada")
    await claim_all(app, "email")
    await send.options(delay=timedelta(hours=1)).enqueue(to="bob")
    parent = await other.enqueue()
    await other.options(after=parent.job_id).enqueue()
    states = {job.state for job in await app.jobs.list()}
    assert states == {*JobState} - {JobState.WAITING, JobState.COMPLETED, JobState.CANCELLED}
    await asyncio.to_thread(discard_jobs, app)
    assert {job.state for job in await app.jobs.list()} == {JobState.CANCELLED}


async def claim_all(app: App, queue: str) -> None:
    """As a worker that then dies."""
    store = await app._stores.async_store()
    info = WorkerInfo(host="h", pid=1, version="0", queues=(queue,))
    worker = await store.run(register_worker("w", info, epoch=store.epoch))
    call = claim_jobs(
        queue, worker=worker, request=1, limit=9, lifetime_us=None, sleep=False, epoch=store.epoch
    )
    assert (await store.run(call)).attempts


def test_a_temporary_store_is_found_by_an_app_without_arguments(monkeypatch: pytest.MonkeyPatch):
    """While the block lasts, whatever was set before; afterwards that is there again."""
    monkeypatch.setenv("ONECOMMIT_DSN", "postgresql://nowhere.example.com/x")
    monkeypatch.delenv("ONECOMMIT_EPOCH", raising=False)
    app = App()

    @app.job()
    def work(ctx) -> None: ...

    with temporary_store() as dsn, app.sync:
        assert app.settings.dsn == dsn
        assert app.settings.epoch == int(os.environ["ONECOMMIT_EPOCH"])
        work.sync.enqueue()
        asyncio.run(run_jobs(app))
        assert [job.state for job in app.sync.jobs.list()] == [JobState.COMPLETED]
    assert os.environ["ONECOMMIT_DSN"] == "postgresql://nowhere.example.com/x"
    assert "ONECOMMIT_EPOCH" not in os.environ
