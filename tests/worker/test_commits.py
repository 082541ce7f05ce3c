"""A handler's COMMIT that is stopped, or that the server refuses, has settled nothing; the attempt goes on from there."""

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import psycopg
import pytest

from onecommit.app.context import CallerOwnedJobContext
from onecommit.domain.job import JobState
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.telemetry.events import (
    AttemptFailed,
    CompletedThenRaised,
    ReceiptWithoutCompletion,
    StaleAttempt,
)

from tests.worker.ledger import Ledger, ledger

__all__ = ["ledger"]
pytestmark = pytest.mark.pg

NOW = Retry(first=timedelta(0))
LATER = Retry(first=timedelta(hours=1))
GATE = """
create function wait_for_gate() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(7);
    return null;
end $$;
create constraint trigger gate after insert on ledger deferrable initially deferred
    for each row execute function wait_for_gate();
select pg_advisory_lock(7)
"""


@pytest.fixture
async def gate(ledger: Ledger) -> AsyncIterator[None]:
    """A COMMIT of what was written to the ledger waits."""
    await ledger.connection.execute(GATE)
    yield
    await ledger.connection.execute("drop function wait_for_gate cascade")


async def psycopg_commit(ctx: CallerOwnedJobContext, dsn: str) -> FinalizationReceipt:
    async with await psycopg.AsyncConnection.connect(dsn) as connection, connection.transaction():
        await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
        return await ctx.complete_in_tx(connection)


async def asyncpg_commit(ctx: CallerOwnedJobContext, dsn: str) -> FinalizationReceipt:
    async with (
        asyncpg.create_pool(dsn, min_size=0) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        await connection.execute("insert into ledger values ($1)", ctx.job_id)
        return await ctx.complete_in_tx(connection)


@pytest.mark.parametrize("commit", [psycopg_commit, asyncpg_commit])
async def test_a_time_limit_that_passes_during_the_commit(
    app, worker_of, events, ledger, gate, commit
):
    """The driver stops the statement on the server; what it came to is asked for, and it was rolled back."""

    @app.caller_owned_job(retry=LATER, timeout=timedelta(seconds=1))
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        return await commit(ctx, ledger.dsn)

    job = await settle.enqueue()
    worker = await worker_of(cancel_grace=30.0)
    failed = await events.wait_for(AttemptFailed)
    await worker.drain()
    assert (failed.job, failed.code) == (job.job_id, "timeout")
    await ledger.connection.execute("select pg_advisory_unlock(7)")
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)
    assert await ledger.rows(job) == 0
    assert not events.of(CompletedThenRaised) + events.of(StaleAttempt)


@pytest.mark.parametrize(("tried_again_by", "attempts"), [("the handler", 1), ("the worker", 2)])
async def test_a_serialization_failure_at_the_commit_is_tried_again(
    app, worker_of, events, ledger, tried_again_by, attempts
):
    """In the same attempt by the handler itself, or by the next one; the first receipt counts for nothing."""
    conflicts = [True]

    async def once(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        async with await psycopg.AsyncConnection.connect(ledger.dsn) as connection:
            await connection.set_isolation_level(psycopg.IsolationLevel.SERIALIZABLE)
            async with connection.transaction():
                await connection.execute("select count(*) from ledger")
                await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
                receipt = await ctx.complete_in_tx(connection)
                if conflicts:
                    conflicts.pop()
                    await conflict()
        return receipt

    async def conflict() -> None:
        async with await psycopg.AsyncConnection.connect(ledger.dsn) as other:
            await other.set_isolation_level(psycopg.IsolationLevel.SERIALIZABLE)
            await other.execute("select count(*) from ledger")
            await other.execute("insert into ledger values (0)")

    @app.caller_owned_job(retry=NOW)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        try:
            return await once(ctx)
        except psycopg.errors.SerializationFailure:
            if tried_again_by == "the worker":
                raise
        return await once(ctx)

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.COMPLETED, attempts)
    assert await ledger.rows(job) == 1
    assert [event.failure for event in events.of(AttemptFailed)] == ["SerializationFailure"] * (
        attempts - 1
    )
    assert not events.of(CompletedThenRaised) + events.of(ReceiptWithoutCompletion)


async def test_rows_that_are_committed_after_the_completion_do_not_complete_again(
    app, worker_of, events, ledger
):
    """A second transaction of the same attempt is refused as a second completion, and the first one stands."""

    @app.caller_owned_job(retry=NOW)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        await ledger.settle(ctx)
        return await ledger.settle(ctx)

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert await ledger.rows(job) == 1
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.COMPLETED, 1)
    assert len(events.of(CompletedThenRaised)) == 1


async def test_a_completion_that_was_rolled_back_may_be_made_again(app, worker_of, events, ledger):
    """In another transaction of the same attempt; the receipt of either names the attempt that completed."""

    @app.caller_owned_job(retry=NOW)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        async with await psycopg.AsyncConnection.connect(ledger.dsn) as connection:
            await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
            await ctx.complete_in_tx(connection)
            await connection.rollback()
        return await ledger.settle(ctx)

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert await ledger.rows(job) == 1
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.COMPLETED, 1)
    assert not events.of(CompletedThenRaised) + events.of(ReceiptWithoutCompletion)
