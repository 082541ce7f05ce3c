"""A whole worker, and the transactions of its handlers, through PgBouncer in session and in transaction mode."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import psycopg_pool
import pytest

from onecommit.app.app import App
from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.domain.job import JobState
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import StaleAttempt
from onecommit.telemetry.events import ListenerReady, ListenerSilent
from onecommit.worker import Worker

from tests.pgbouncer import pgbouncer
from tests.strict import strict_database
from tests.worker.harness import Events, start_worker
from tests.worker.test_pools import three_heartbeats

pytestmark = pytest.mark.pg

SESSION = pytest.mark.parametrize("pooled", ["session"], indirect=True)
TRANSACTION = pytest.mark.parametrize("pooled", ["transaction"], indirect=True)
BOTH = pytest.mark.parametrize("pooled", ["session", "transaction"], indirect=True)


@dataclass(kw_only=True)
class Pooled:
    """An App that knows no other way to its store than the pooler."""

    app: App
    dsn: str
    events: Events
    workers: list[Worker]

    async def start(self, **settings) -> Worker:
        settings.setdefault("heartbeat_interval", 0.2)
        settings.setdefault("rescue_window", 3.0)
        worker = await start_worker(self.app, self.events, **settings)
        self.workers.append(worker)
        return worker

    def connect(self):
        """A connection of the application's."""
        return psycopg.AsyncConnection.connect(self.dsn, prepare_threshold=None)

    async def states(self, jobs) -> set[JobState]:
        return {(await self.app.jobs.get(job.job_id)).state for job in jobs}


@pytest.fixture
def database(postgres):
    """Nobody else's worker may lead here."""
    with strict_database(postgres) as fresh:
        with fresh.connect() as connection:
            connection.execute("create table ledger (job bigint not null)")
        yield fresh


@pytest.fixture
async def pooled(database, events, request) -> AsyncIterator[Pooled]:
    mode, pool_size = request.param if isinstance(request.param, tuple) else (request.param, 50)
    with pgbouncer(database, mode=mode, pool_size=pool_size) as dsn:
        app = App(dsn, **database.identity, transaction_pooler=mode == "transaction")
        async with app:
            workers: list[Worker] = []
            yield Pooled(app=app, dsn=dsn, events=events, workers=workers)
            for worker in workers:
                await worker.stop()


def rows(database, jobs) -> list[int]:
    """How many rows of the ledger each job has."""
    with database.connect() as connection:
        found = [job for (job,) in connection.execute("select job from ledger")]
    return [found.count(job.job_id) for job in jobs]


def rescue(database, job_id: int) -> None:
    """What rescue does to a first attempt: it is closed, and the job is scheduled again."""
    with database.connect() as connection:
        connection.execute(
            "select onecommit.close_attempts(array[r.chapter], array[r.lane], array[r.seq],"
            " array[r.job_id], array[1::bigint], array['rescued'], array[0::bigint], array['test'],"
            " array[null], false) from onecommit.ready r where r.job_id = %s",
            (job_id,),
        )


@BOTH
async def test_a_whole_worker_runs_through_a_pooler(pooled, database):
    """Claims, batched completion, retries that fall due, rescue and heartbeats."""

    @pooled.app.job()
    async def plain(ctx: JobContext) -> None: ...

    @pooled.app.job(retry=Retry(first=timedelta(milliseconds=10)))
    async def twice(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise ValueError

    lost = await plain.enqueue()
    with database.connect() as connection:  # claimed by a worker that dies at once
        connection.execute(
            "with w as (select onecommit.register_worker('dead', %s, active_epoch) as id, active_epoch as epoch"
            " from onecommit.store_status()) select c.* from w, onecommit.claim_jobs(w.id, 1, 'default', 1, null, null, w.epoch) c",
            ('{"queues": ["default"], "capabilities": ["caller_owned_v1"]}',),
        )
        connection.execute("update onecommit.worker set ended_at = clock_timestamp()")
    jobs = [*await plain.enqueue_many([{}] * 50), await twice.enqueue()]
    worker = await pooled.start()
    await three_heartbeats(database, worker._machinery.incarnation.worker)
    async with asyncio.timeout(30):
        while await pooled.states([lost, *jobs]) != {JobState.COMPLETED}:
            await worker.drain()
    assert (await pooled.app.jobs.get(lost.job_id)).attempt == 2


@BOTH
async def test_rows_and_completion_commit_together_through_a_pooler(pooled, database):
    """And roll back together; a stale attempt takes its rows down."""
    refused = []

    @pooled.app.caller_owned_job(retry=Retry(first=timedelta(0)))
    async def settle(ctx: CallerOwnedJobContext, how: str) -> FinalizationReceipt:
        async with await pooled.connect() as connection, connection.transaction():
            await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
            if how == "is rescued first" and ctx.run_lease == 1:
                rescue(database, ctx.job_id)
            try:
                receipt = await ctx.complete_in_tx(connection)
            except StaleAttempt as error:
                refused.append(error)
                raise
            if how == "rolls back first" and ctx.attempt == 1:
                raise ValueError
        return receipt

    jobs = await settle.enqueue_many(
        [{"how": "commits"}] * 10
        + [{"how": "rolls back first"}] * 5
        + [{"how": "is rescued first"}]
    )
    worker = await pooled.start()
    await worker.drain()
    assert rows(database, jobs) == [1] * 16
    assert await pooled.states(jobs) == {JobState.COMPLETED}
    assert len(refused) == 1


@SESSION
async def test_notices_arrive_through_a_session_pooler(pooled):
    ran = asyncio.Event()

    @pooled.app.job()
    async def work(ctx: JobContext) -> None:
        ran.set()

    worker = await pooled.start(poll_interval=3600.0)
    await pooled.events.wait_for(ListenerReady)
    await worker.drain()
    await work.enqueue()
    async with asyncio.timeout(20):
        await ran.wait()


@TRANSACTION
async def test_listen_through_a_transaction_pooler_is_found_silent_and_polling_takes_over(pooled):
    """LISTEN succeeds there; only a notice of the worker's own shows that none arrives."""
    ran = asyncio.Event()

    @pooled.app.job()
    async def work(ctx: JobContext) -> None:
        ran.set()

    await pooled.start(poll_interval=3600.0, silent_poll_interval=0.1)
    await pooled.events.wait_for(ListenerSilent)
    await work.enqueue()
    async with asyncio.timeout(20):
        await ran.wait()
    assert not pooled.events.of(ListenerReady)


@pytest.mark.parametrize("pooled", [("transaction", 4)], indirect=True, ids=["4-connections"])
async def test_runtime_and_handlers_share_a_few_connections_of_a_transaction_pooler(
    pooled, database
):
    """Ten handlers and the runtime take turns; a heartbeat never waits for longer than a transaction."""
    async with psycopg_pool.AsyncConnectionPool(
        pooled.dsn, min_size=0, max_size=10, kwargs={"prepare_threshold": None}
    ) as pool:

        @pooled.app.caller_owned_job()
        async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
            async with pool.connection() as connection:
                await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
                return await ctx.complete_in_tx(connection)

        jobs = await settle.enqueue_many([{}] * 100)
        worker = await pooled.start()
        await three_heartbeats(database, worker._machinery.incarnation.worker)
        await worker.drain()
        assert rows(database, jobs) == [1] * 100
        assert {view.attempt for view in await views(pooled.app, jobs)} == {1}


async def views(app: App, jobs) -> list:
    return [await app.jobs.get(job.job_id) for job in jobs]
