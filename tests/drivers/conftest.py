"""A database and an App for all tests of one driver module: each test uses jobs of its own."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import pytest

from onecommit import App, CallerOwnedJobContext, FinalizationReceipt, SyncCallerOwnedJobContext
from onecommit.app.job import Job
from onecommit.calls.attempts import claim_jobs
from onecommit.calls.finalization import attempt_status
from onecommit.calls.operators import CANCEL_JOBS, on_jobs
from onecommit.calls.workers import register_worker
from onecommit.domain.attempt import Attempt
from onecommit.domain.evidence import AttemptState, AttemptStatus
from onecommit.domain.worker import WorkerInfo
from onecommit.store.async_store import AsyncStore

from tests.clusters import Cluster
from tests.drivers.callers import PYTHON_CALLERS, Caller, PythonCaller
from tests.drivers.django_callers import DJANGO_CALLERS
from tests.drivers.sql_callers import SQL_CALLERS
from tests.strict import StrictDatabase, strict_database


@pytest.fixture(scope="module")
def shared_database(postgres: Cluster) -> Iterator[StrictDatabase]:
    """One strict store for the module, with a table of the application."""
    with strict_database(postgres) as fresh:
        with fresh.connect() as connection:
            connection.execute("create table ledger (entry text primary key)")
        yield fresh


class Port:
    """A runtime that does nothing."""

    schema = "onecommit"

    def is_cancelled(self, attempt: Attempt) -> bool:
        return attempt.job_id < 0

    def set_progress(self, attempt: Attempt, progress: str) -> None: ...

    async def flush_progress(self, attempt: Attempt) -> None: ...

    def flush_progress_from_thread(self, attempt: Attempt) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Application:
    """An App with two jobs, its store, and a ledger of business rows."""

    app: App
    store: AsyncStore
    notify: Job
    settle: Job
    settle_sync: Job
    database: StrictDatabase

    @property
    def caller_dsn(self) -> str:
        """The login of the callers, which may complete, enqueue and accept."""
        return self.database.login("caller")

    async def claim(self, *, sync: bool) -> CallerOwnedJobContext | SyncCallerOwnedJobContext:
        """The context of a claimed attempt of a caller-owned job."""
        job = self.settle_sync if sync else self.settle
        enqueued = await job.enqueue(invoice_id=1)
        attempt = await self._claim_one(job.definition.queue)
        assert attempt.job_id == enqueued.job_id
        return job.definition.context(attempt, Port())

    async def status(self, context) -> AttemptStatus:
        """What the store holds about the attempt."""
        return await self.store.run(attempt_status(context.token))

    async def is_open(self, context) -> bool:
        """Whether the attempt is still to be completed."""
        return (await self.status(context)).state is AttemptState.OPEN

    async def cancel(self, context) -> None:
        """Have an operator close the attempt, so that it is stale."""
        epoch = self.store.epoch
        await self.store.run(
            on_jobs(CANCEL_JOBS, [context.job_id], actor="test", reason="test", epoch=epoch)
        )

    def entries(self) -> set[str]:
        """The business rows that are committed."""
        with self.database.connect() as connection:
            return {entry for (entry,) in connection.execute("select entry from ledger")}

    def only_writer(self) -> int:
        """The server process of the one transaction that has written something."""
        with self.database.connect() as connection:
            rows = connection.execute(
                "select pid from pg_stat_activity where datname = %s and backend_xid is not null",
                (self.database.name,),
            )
            ((pid,),) = rows.fetchall()
            return pid

    async def _claim_one(self, queue: str) -> Attempt:
        info = WorkerInfo(host="test", pid=1, version="0", queues=(queue,))
        epoch = self.store.epoch
        worker = await self.store.run(register_worker("test", info, epoch=epoch))
        call = claim_jobs(
            queue, worker=worker, request=1, limit=1, lifetime_us=None, sleep=False, epoch=epoch
        )
        (attempt,) = (await self.store.run(call)).attempts
        return attempt


@pytest.fixture
async def application(shared_database: StrictDatabase) -> AsyncIterator[Application]:
    """An App that knows the store it is meant for, as in production."""
    app = App(
        shared_database.dsn, **shared_database.identity, operation_timeout=timedelta(seconds=20)
    )

    @app.caller_owned_job(queue="settle")
    async def settle(ctx: CallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
        raise NotImplementedError

    @app.caller_owned_job(queue="settle")
    def settle_sync(ctx: SyncCallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
        raise NotImplementedError

    @app.job()
    async def notify(ctx, invoice_id: int) -> None: ...

    async with app:
        store = await app._stores.async_store()
        yield Application(
            app=app,
            store=store,
            notify=notify,
            settle=settle,
            settle_sync=settle_sync,
            database=shared_database,
        )


WITH_ADAPTER = PYTHON_CALLERS | DJANGO_CALLERS
CALLERS = WITH_ADAPTER | SQL_CALLERS


@pytest.fixture(params=CALLERS.values(), ids=CALLERS.keys())
async def caller(request, application: Application) -> AsyncIterator[Caller]:
    """A caller's connection through one of the supported drivers."""
    async with request.param(application.caller_dsn) as opened:
        yield opened


@pytest.fixture(params=WITH_ADAPTER.values(), ids=WITH_ADAPTER.keys())
async def python_caller(request, application: Application) -> AsyncIterator[PythonCaller]:
    """A caller's connection through one of the drivers that have an adapter."""
    async with request.param(application.caller_dsn) as opened:
        yield opened


async def write(caller: Caller) -> str:
    """Begin the caller's transaction and write one business row."""
    await caller.begin()
    return await add_entry(caller)


async def add_entry(caller: Caller) -> str:
    """Write one business row."""
    entry = uuid4().hex
    await caller.execute(f"insert into ledger values ('{entry}')")
    return entry


async def assert_cannot_commit(caller: Caller) -> None:
    """Whatever the driver says to commit, nothing of the transaction may become visible."""
    if caller.tells:
        with pytest.raises(Exception):  # noqa: B017, PT011  each driver has its own error
            await caller.commit()
    else:
        await caller.commit()
