"""Transactions of handlers cannot take the connections by which the runtime lives and decides."""

import asyncio
from contextlib import ExitStack

import psycopg
import psycopg_pool
import pytest

from onecommit.app.context import CallerOwnedJobContext
from onecommit.calls.workers import connection_budget
from onecommit.domain.job import JobState
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import UsageError
from onecommit.telemetry.events import CallerOwnedDisabled, ConnectionsScarce, WorkerStarted

from tests.worker.harness import eventually, start_worker

pytestmark = pytest.mark.pg

HEARTBEATS = "select heartbeat_at from onecommit.worker where worker = %s"


@pytest.fixture
async def settle(app):
    @app.caller_owned_job(queue="settle")
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        raise NotImplementedError

    return settle


async def test_a_shared_pool_must_leave_the_reserve_of_the_runtime(app, events, settle):
    """Refused before anything is registered, with the numbers."""
    with pytest.raises(UsageError, match=r"20 caller-owned .* 9 connections .* need 29, .* has 25"):
        await start_worker(app, events, queues={"settle": 20}, shared_pool=25)
    assert not events.of(WorkerStarted)


async def test_ordinary_jobs_take_nothing_from_a_shared_pool(app, worker_of):
    @app.job(queue="plain")
    async def plain(ctx) -> None: ...

    await worker_of(queues={"plain": 1000}, shared_pool=9)


async def test_pools_beyond_max_connections_are_refused(app, events, settle):
    with pytest.raises(UsageError, match="the server allows"):
        await start_worker(app, events, queues={"settle": 1}, application_connections=100_000)


async def test_pools_beyond_what_is_free_are_warned_of(app, worker_of, events, settle):
    store = await app._stores.async_store()
    usable = (await store.run(connection_budget())).usable
    await worker_of(queues={"settle": 1}, application_connections=usable - 9)
    [scarce] = events.of(ConnectionsScarce)
    assert scarce.needed == scarce.usable == usable > scarce.free


@pytest.mark.parametrize("limited", ["database {database}", "role application"])
async def test_the_limits_of_database_and_role_count(app, database, events, settle, limited):
    """The least of all limits, for who logs in."""
    limit = f"alter {limited.format(database=database.name)} connection limit"
    with database.connect() as owner:
        owner.execute(f"{limit} 15")
        try:
            with pytest.raises(UsageError, match=r"may use 19 .* the server allows 15"):
                await start_worker(app, events, queues={"settle": 1}, application_connections=10)
        finally:
            owner.execute(f"{limit} -1")


async def test_the_sessions_of_other_roles_are_counted_as_used(app, database):
    """What they do is hidden from the definers' owner, and that they are there is not."""
    store = await app._stores.async_store()
    before = (await store.run(connection_budget())).free
    with ExitStack() as others:
        for login in ("web", "operators", "caller"):
            others.enter_context(psycopg.connect(database.login(login)))
        assert (await store.run(connection_budget())).free == before - 3


async def test_a_queue_that_old_workers_serve_is_reported_at_the_start(
    app, worker_of, events, database, settle
):
    """Its jobs run, and each completion would be refused."""
    with database.connect() as connection:
        old = connection.execute(
            "select onecommit.register_worker('old', '{\"queues\": [\"settle\"]}', active_epoch)"
            " from onecommit.store_status()"
        ).fetchone()[0]
        connection.execute("delete from onecommit.caller_owned_queue where queue = 'settle'")
        await worker_of(queues={"settle": 1})
        [disabled] = events.of(CallerOwnedDisabled)
        assert (disabled.queue, disabled.waiting_for) == ("settle", "old")
        connection.execute(
            "select onecommit.retire_worker(%s, active_epoch) from onecommit.store_status()", (old,)
        )
    await worker_of(queues={"settle": 1})
    assert len(events.of(CallerOwnedDisabled)) == 1


async def test_a_queue_that_an_operator_disabled_is_reported_at_the_start(app, worker_of, events):
    """And stays disabled: nobody asked the worker to enable it."""

    @app.caller_owned_job(queue="disabled")
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        raise NotImplementedError

    async def enabled() -> bool:
        return {queue.queue: queue.caller_owned for queue in await app.queues.list()}["disabled"]

    await (await worker_of(queues={"disabled": 1})).stop()
    assert await enabled()
    await app.queues.disable_caller_owned("disabled", actor="ada", reason="test")
    await worker_of(queues={"disabled": 1})
    [disabled] = events.of(CallerOwnedDisabled)
    assert (disabled.queue, disabled.waiting_for, disabled.by_operator) == ("disabled", "", True)
    assert not await enabled()


async def test_handlers_that_hold_the_whole_application_pool_stop_no_heartbeat_and_no_reconciliation(
    app, worker_of, database
):
    """Every connection of it lies in an open transaction; more handlers wait for one."""
    holding, undone = asyncio.Semaphore(0), asyncio.Event()

    async with psycopg_pool.AsyncConnectionPool(database.dsn, min_size=2, max_size=2) as pool:

        @app.caller_owned_job(queue="settle")
        async def hold(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
            async with pool.connection() as connection:
                await connection.execute("select")
                holding.release()
                await undone.wait()
                return await ctx.complete_in_tx(connection)

        @app.caller_owned_job(queue="settle")
        async def fail(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
            raise ValueError

        held = [await hold.enqueue() for _ in range(4)]
        worker = await worker_of(
            queues={"settle": 10}, heartbeat_interval=0.1, rescue_window=2.0, drain_budget=1.0
        )
        async with asyncio.timeout(30):
            await holding.acquire()
            await holding.acquire()
        failed = await fail.options(max_attempts=1).enqueue()

        async def decided() -> bool:
            return (await app.jobs.get(failed.job_id)).state is JobState.DEAD

        await eventually(decided, what="an attempt is reconciled while the pool is exhausted")
        await three_heartbeats(database, worker._machinery.incarnation.worker)
        assert (await pool_waiters(pool)) == 2
        undone.set()
        await worker.drain()
    states = {(await app.jobs.get(job.job_id)).state for job in held}
    assert states == {JobState.COMPLETED}


async def three_heartbeats(database, worker: int) -> None:
    """Return when the store has heard of the worker three times more."""
    connection = await psycopg.AsyncConnection.connect(database.observer_dsn, autocommit=True)
    async with connection:
        heard = set()

        async def enough() -> bool:
            heard.add(await (await connection.execute(HEARTBEATS, (worker,))).fetchone())
            return len(heard) > 3

        await eventually(enough, what="three heartbeats")


async def pool_waiters(pool: psycopg_pool.AsyncConnectionPool) -> int:
    return pool.get_stats()["requests_waiting"]
