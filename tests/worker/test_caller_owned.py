"""A caller-owned attempt is decided by durable evidence, whatever its handler does."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
import pytest

from onecommit.app.context import CallerOwnedJobContext, JobContext, SyncCallerOwnedJobContext
from onecommit.domain.job import JobState, Outcome
from onecommit.domain.outcome import Discard, Snooze
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import StaleAttempt as StaleAttemptError
from onecommit.telemetry.events import (
    AbandonedAttempt,
    AttemptFailed,
    CompletedThenRaised,
    LoopFailed,
    NoReceipt,
    ReceiptWithoutCompletion,
    ResolvedAttempt,
    StaleAttempt,
    UnresolvedAttempt,
    WorkerDraining,
)

from tests.proxy import Proxy
from tests.worker.harness import eventually
from tests.worker.ledger import ledger

__all__ = ["ledger"]

pytestmark = pytest.mark.pg

NOW = Retry(first=timedelta(0))
LATER = Retry(first=timedelta(hours=1))


async def test_rows_and_completion_land_in_one_commit(app, worker_of, events, ledger):
    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        return await ledger.settle(ctx)

    jobs = [await settle.enqueue() for _ in range(20)]
    worker = await worker_of()
    await worker.drain()
    assert [await ledger.rows(job) for job in jobs] == [1] * 20
    assert {(await app.jobs.get(job.job_id)).state for job in jobs} == {JobState.COMPLETED}
    assert not events.of(CompletedThenRaised)


async def test_a_disabled_queue_refuses_rows_and_completion_until_it_is_allowed(
    app, worker_of, events, ledger
):
    """The handler meets it like any error; what was refused completes with the next attempt."""

    @app.caller_owned_job(retry=NOW, max_attempts=1000)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        return await ledger.settle(ctx)

    @app.job()
    async def plain(ctx: JobContext) -> None: ...

    job, ordinary = await settle.enqueue(), await plain.enqueue()
    await app.queues.disable_caller_owned("default", actor="ada", reason="test")
    await worker_of()
    failed = await events.wait_for(AttemptFailed)
    assert (failed.job, failed.failure) == (job.job_id, "FeatureDisabled")
    await eventually(
        lambda: _completed(app, ordinary.job_id), what="the ordinary job has completed"
    )
    assert await ledger.rows(job) == 0
    await app.queues.allow_caller_owned("default", actor="ada", reason="test")
    await eventually(lambda: _completed(app, job.job_id), what="the job has completed")
    assert await ledger.rows(job) == 1


async def _completed(app, job_id: int) -> bool:
    return (await app.jobs.get(job_id)).state is JobState.COMPLETED


async def test_a_plain_function_settles_in_its_thread(app, worker_of, ledger):
    @app.caller_owned_job()
    def settle(ctx: SyncCallerOwnedJobContext) -> FinalizationReceipt:
        with psycopg.connect(ledger.dsn) as connection, connection.transaction():
            connection.execute("insert into ledger values (%s)", (ctx.job_id,))
            return ctx.complete_in_tx(connection)

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert await ledger.rows(job) == 1
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


async def test_an_error_before_the_commit_leaves_neither_and_is_retried(app, worker_of, ledger):
    @app.caller_owned_job(retry=NOW)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        async with (
            await psycopg.AsyncConnection.connect(ledger.dsn) as connection,
            connection.transaction(),
        ):
            await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
            receipt = await ctx.complete_in_tx(connection)
            if ctx.attempt == 1:
                raise ValueError
        return receipt

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert await ledger.rows(job) == 1
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.COMPLETED, 2)


@pytest.mark.parametrize("exit_by", ["exception", "cancellation", "nothing", "timeout", "exit"])
async def test_a_committed_completion_stands_however_the_handler_ends(
    app, worker_of, events, ledger, exit_by
):
    @app.caller_owned_job(retry=NOW, timeout=timedelta(seconds=2))
    async def settle(ctx: CallerOwnedJobContext) -> Any:
        await ledger.settle(ctx)
        match exit_by:
            case "exception":
                raise ValueError
            case "cancellation":
                raise asyncio.CancelledError
            case "timeout":
                await asyncio.Event().wait()
            case "exit":
                raise SystemExit(1)

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert await ledger.rows(job) == 1
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.COMPLETED, 1)
    [event] = events.of(CompletedThenRaised)
    assert event.job == job.job_id
    assert not events.of(AttemptFailed)


async def test_a_lost_reply_to_the_commit_is_not_an_error_of_the_job(
    app, worker_of, events, ledger
):
    async with Proxy(ledger.dsn) as proxy:

        @app.caller_owned_job(retry=NOW)
        async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
            proxy.lose_reply(containing=b"COMMIT\0")
            return await ledger.settle(ctx, dsn=proxy.dsn)

        job = await settle.enqueue()
        worker = await worker_of()
        await worker.drain()
        assert proxy.lost.is_set()
    assert await ledger.rows(job) == 1
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.COMPLETED, 1)
    [event] = events.of(CompletedThenRaised)
    assert event.exit == "error"


@pytest.mark.parametrize("result", [None, "done", "receipt of another attempt"])
async def test_a_handler_without_its_own_receipt_is_a_programming_error(
    app, worker_of, events, ledger, result
):
    receipts = []

    @app.caller_owned_job()
    async def other(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        receipts.append(await ledger.settle(ctx))
        return receipts[0]

    @app.caller_owned_job(retry=NOW)
    async def settle(ctx: CallerOwnedJobContext) -> Any:
        return receipts[0] if result == "receipt of another attempt" else result

    await other.enqueue()
    worker = await worker_of()
    await worker.drain()
    job = await settle.enqueue()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.outcome, view.code) == (JobState.DEAD, Outcome.FAILED, "no_receipt")
    assert view.attempt == 1
    [event] = events.of(NoReceipt)
    assert event.job == job.job_id


async def test_a_receipt_whose_transaction_rolled_back_is_a_protocol_error_and_retried(
    app, worker_of, events, ledger
):
    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        connection = await psycopg.AsyncConnection.connect(ledger.dsn)
        async with connection:
            await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
            receipt = await ctx.complete_in_tx(connection)
            await connection.rollback()
        return receipt

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert await ledger.rows(job) == 0
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)
    [event] = events.of(ReceiptWithoutCompletion)
    assert event.job == job.job_id


@pytest.mark.parametrize(
    ("outcome", "state", "attempt"),
    [(Snooze(timedelta(hours=1)), JobState.SCHEDULED, 0), (Discard("no"), JobState.DEAD, 1)],
    ids=["snooze", "discard"],
)
async def test_a_handler_may_choose_another_outcome_instead_of_finalizing(
    app, worker_of, outcome, state, attempt
):
    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> Any:
        return outcome

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (state, attempt)


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_transaction_that_outlives_its_handler_is_waited_for(
    app, worker_of, events, ledger, end
):
    connections = []
    left = asyncio.Event()

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        connection = await psycopg.AsyncConnection.connect(ledger.dsn)
        connections.append(connection)
        await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
        await ctx.complete_in_tx(connection)
        left.set()
        raise ValueError

    job = await settle.enqueue()
    worker = await worker_of()
    async with asyncio.timeout(30):
        await left.wait()
        await worker_is_asking(worker)
    assert (await app.jobs.get(job.job_id)).state is JobState.RUNNING
    await getattr(connections[0], end)()
    await connections[0].close()
    await worker.drain()

    state = (await app.jobs.get(job.job_id)).state
    assert state is (JobState.COMPLETED if end == "commit" else JobState.SCHEDULED)
    assert await ledger.rows(job) == (1 if end == "commit" else 0)
    assert len(events.of(CompletedThenRaised)) == (1 if end == "commit" else 0)
    assert len(events.of(AttemptFailed)) == (0 if end == "commit" else 1)


async def worker_is_asking(worker) -> None:
    """Wait until the handler has ended and the reconciler has the case."""
    [run] = list(worker._machinery.running)
    await eventually(lambda: run.ended, what="the handler has ended")


async def test_past_the_budget_a_watcher_names_who_holds_the_attempt_and_goes_on(
    app, worker_of, events, ledger
):
    connections = []

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        connection = await psycopg.AsyncConnection.connect(ledger.dsn)
        connections.append(connection)
        await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
        return await ctx.complete_in_tx(connection)

    job = await settle.enqueue()
    worker = await worker_of(queues={"default": 1}, reconcile_budget=0.2)
    unresolved = await events.wait_for(UnresolvedAttempt)
    assert unresolved.holder_pid == connections[0].info.backend_pid

    other = await settle.enqueue()
    await eventually(lambda: len(connections) == 2, what="the slot is free, so another job runs")
    for connection in connections:
        await connection.commit()
        await connection.close()
    await eventually(lambda: not worker._machinery.reconciler.watchers, what="all is decided")
    await worker.drain()
    assert [await ledger.rows(each) for each in (job, other)] == [1, 1]


READ_ONLY = "alter database {} set default_transaction_read_only = {}"
RECONNECT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name like 'onecommit%'
"""
REFUSING = """
create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
create trigger refuse before insert on onecommit.scheduled for each row execute function refuse()
"""


async def test_a_server_that_became_read_only_is_no_evidence(
    app, worker_of, events, ledger, database
):
    """As after a switch to another primary: nothing can be recorded for a while, and nothing is lost."""

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        await ledger.connection.execute(READ_ONLY.format(database.name, "on"))
        await ledger.connection.execute(RECONNECT)
        raise ValueError

    job = await settle.enqueue()
    worker = await worker_of(reconcile_budget=0.2)
    await events.wait_for(UnresolvedAttempt)
    await ledger.connection.execute(READ_ONLY.format(database.name, "off"))
    await ledger.connection.execute(RECONNECT)
    await events.wait_for(ResolvedAttempt)
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.SCHEDULED, 1)


async def test_a_failure_that_nobody_foresaw_is_no_evidence_and_is_reported_once(
    app, worker_of, events, ledger
):
    """The attempt is kept and asked for again, whatever a call about it meets."""

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        raise ValueError

    await ledger.connection.execute(REFUSING)
    job = await settle.enqueue()
    worker = await worker_of(reconcile_budget=0.5)
    await events.wait_for(UnresolvedAttempt)
    assert [event.failure for event in events.of(LoopFailed)] == ["RaiseException"]
    assert (await app.jobs.get(job.job_id)).state is JobState.RUNNING
    await ledger.connection.execute("drop function refuse cascade")
    await events.wait_for(ResolvedAttempt)
    await worker.drain()
    assert (await app.jobs.get(job.job_id)).state is JobState.SCHEDULED


@pytest.mark.parametrize("end", ["decided in time", "left to rescue"])
async def test_at_shutdown_an_unresolved_attempt_gets_the_drain_budget_and_is_then_left_to_rescue(
    app, worker_of, events, ledger, end
):
    connections = []

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        connection = await psycopg.AsyncConnection.connect(ledger.dsn)
        connections.append(connection)
        await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
        return await ctx.complete_in_tx(connection)

    job = await settle.enqueue()
    in_time = end == "decided in time"
    worker = await worker_of(reconcile_budget=0.2, drain_budget=30.0 if in_time else 0.2)
    await events.wait_for(UnresolvedAttempt)
    stopping = asyncio.ensure_future(worker.stop())
    await events.wait_for(WorkerDraining)
    if not in_time:
        await stopping
    await connections[0].commit()
    await connections[0].close()

    assert await stopping == (0 if in_time else 1)
    assert len(events.of(ResolvedAttempt)) == (1 if in_time else 0)
    assert [event.job for event in events.of(AbandonedAttempt)] == ([] if in_time else [job.job_id])
    assert await ledger.rows(job) == 1
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


async def test_a_rescued_attempt_can_no_longer_write(app, worker_of, events, ledger, database):
    """The stale transaction is aborted by the server, and the winner is left alone."""
    begun = asyncio.Event()
    go_on = asyncio.Event()
    refused = []

    @app.caller_owned_job(retry=NOW)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        if ctx.run_lease == 1:
            begun.set()
            await go_on.wait()
        try:
            return await ledger.settle(ctx)
        except StaleAttemptError as error:
            refused.append(error)
            raise

    job = await settle.enqueue()
    worker = await worker_of()
    async with asyncio.timeout(30):
        await begun.wait()
    with database.connect() as connection:
        # What rescue does: the attempt is closed and the job is scheduled again.
        connection.execute(
            "select onecommit.close_attempts(array[r.chapter], array[r.lane], array[r.seq],"
            " array[r.job_id], array[1::bigint], array['rescued'], array[0::bigint], array['test'],"
            " array[null], false) from onecommit.ready r where r.job_id = %s",
            (job.job_id,),
        )
    go_on.set()
    await worker.drain()
    assert len(refused) == 1
    [stale] = events.of(StaleAttempt)
    assert (stale.job, stale.run_lease) == (job.job_id, 1)
    assert await ledger.rows(job) == 1
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


@pytest.mark.parametrize("trap", ["savepoint", "stale"])
async def test_the_report_names_the_refusal_and_not_what_the_driver_says_of_it(
    app, worker_of, events, ledger, database, trap, caplog
):
    """The block of asyncpg ends with an error of its own, because its connection is closed."""

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        async with (
            asyncpg.create_pool(ledger.dsn, min_size=0) as pool,
            pool.acquire() as connection,
        ):
            if trap == "stale":
                await app.jobs.cancel(ctx.job_id, actor="test", reason="test")
            async with connection.transaction():
                await connection.execute("insert into ledger values ($1)", ctx.job_id)
                if trap == "savepoint":
                    async with connection.transaction():
                        return await ctx.complete_in_tx(connection)
                return await ctx.complete_in_tx(connection)

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    assert await ledger.rows(job) == 0
    failed = [event.failure for event in events.of(AttemptFailed)]
    assert failed == (["SavepointRefused"] if trap == "savepoint" else [])
    state = (await app.jobs.get(job.job_id)).state
    assert state is (JobState.SCHEDULED if trap == "savepoint" else JobState.CANCELLED)
    assert [record for record in caplog.records if record.name.startswith("asyncpg")] == []


ASKING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%completed_attempts%'
"""


async def test_attempts_that_end_together_are_asked_about_together(
    app, worker_of, events, ledger, database
):
    """One question is under way at a time; each attempt gets its own answer, also the one rolled back."""
    committed, gate = 0, asyncio.Event()

    @app.caller_owned_job(retry=LATER)
    async def settle(ctx: CallerOwnedJobContext, commits: bool) -> FinalizationReceipt:
        nonlocal committed
        async with (
            await psycopg.AsyncConnection.connect(ledger.dsn) as connection,
            connection.transaction(force_rollback=not commits),
        ):
            await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
            receipt = await ctx.complete_in_tx(connection)
        committed += 1
        await gate.wait()
        return receipt

    async def asking() -> int:
        cursor = await ledger.connection.execute(ASKING)
        return (await cursor.fetchone())[0]

    jobs = [await settle.enqueue(commits=number != 3) for number in range(6)]
    worker = await worker_of()
    await eventually(lambda: committed == 6, what="all handlers have ended their transactions")
    async with await psycopg.AsyncConnection.connect(database.observer_dsn) as blocker:
        await blocker.execute("lock table onecommit.completion in access exclusive mode")
        gate.set()
        await eventually(asking, what="the worker asks")
        assert await asking() == 1
    await worker.drain()
    assert [await ledger.rows(job) for job in jobs] == [1, 1, 1, 0, 1, 1]
    states = [(await app.jobs.get(job.job_id)).state for job in jobs]
    assert states == [JobState.SCHEDULED if n == 3 else JobState.COMPLETED for n in range(6)]
    assert [event.job for event in events.of(ReceiptWithoutCompletion)] == [jobs[3].job_id]
