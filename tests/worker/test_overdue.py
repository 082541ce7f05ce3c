"""A time limit is kept even if the handler does not stop: the job goes on without it, and it cannot commit."""

import asyncio
import threading
from datetime import timedelta

import psycopg
import pytest

from onecommit.app.context import SyncCallerOwnedJobContext, SyncJobContext
from onecommit.domain.job import JobState
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import StaleAttempt
from onecommit.telemetry.events import CancellationIgnored, CompletedThenRaised
from onecommit.telemetry.events import StaleAttempt as StaleEvent

from tests.worker.harness import eventually

LIMIT = timedelta(milliseconds=50)


@pytest.fixture
def gate():
    """Opened at the end in any case: a thread that waits for it keeps the worker from draining."""
    opened = threading.Event()
    yield opened
    opened.set()


async def dead(app, job_id: int):
    """The job, as soon as it is in the dead letters."""

    async def is_dead() -> bool:
        return (await app.jobs.get(job_id)).state is JobState.DEAD

    await eventually(is_dead, what="the job is dead")
    return await app.jobs.get(job_id)


async def test_a_handler_that_ignores_its_limit_loses_its_attempt(app, worker_of, events, gate):
    @app.job(max_attempts=1, timeout=LIMIT)
    def stubborn(ctx: SyncJobContext) -> None:
        gate.wait()

    await worker_of(cancel_grace=0.05)
    enqueued = await stubborn.enqueue()
    job = await dead(app, enqueued.job_id)
    gate.set()
    assert job.code == "timeout"
    assert len(events.of(CancellationIgnored)) == 1
    assert (await app.jobs.get(enqueued.job_id)).state is JobState.DEAD


async def test_what_it_tries_to_commit_afterwards_is_refused(app, worker_of, database, gate):
    refused = threading.Event()

    @app.caller_owned_job(max_attempts=1, timeout=LIMIT)
    def stubborn(ctx: SyncCallerOwnedJobContext) -> FinalizationReceipt:
        gate.wait()
        with database.connect() as connection:
            connection.autocommit = False
            try:
                return ctx.complete_in_tx(connection)
            except StaleAttempt:
                refused.set()
                raise

    await worker_of(cancel_grace=0.05)
    enqueued = await stubborn.enqueue()
    job = await dead(app, enqueued.job_id)
    gate.set()
    await asyncio.to_thread(refused.wait, 20)
    assert refused.is_set()
    assert job.code == "timeout"


async def test_what_it_has_not_committed_yet_is_waited_for(app, worker_of, events, database, gate):
    """Its commit may come: nothing is recorded before it, and no other job's end waits for it."""
    completed = threading.Event()

    @app.caller_owned_job(queue="slow", timeout=LIMIT)
    def stubborn(ctx: SyncCallerOwnedJobContext) -> FinalizationReceipt:
        with psycopg.connect(database.dsn) as connection:
            receipt = ctx.complete_in_tx(connection)
            completed.set()
            gate.wait()
        return receipt

    @app.job(queue="quick", max_attempts=1)
    def ordinary(ctx: SyncJobContext) -> None:
        raise ValueError

    await worker_of(cancel_grace=0.05)
    enqueued = await stubborn.enqueue()
    await asyncio.to_thread(completed.wait, 20)
    await events.wait_for(CancellationIgnored)
    await dead(app, (await ordinary.enqueue()).job_id)
    assert (await app.jobs.get(enqueued.job_id)).state is JobState.RUNNING
    gate.set()
    assert (await events.wait_for(CompletedThenRaised)).exit == "timeout"
    assert (await app.jobs.get(enqueued.job_id)).state is JobState.COMPLETED
    assert not events.of(StaleEvent)
