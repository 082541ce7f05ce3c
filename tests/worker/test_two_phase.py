"""A caller's transaction that is prepared has no backend: its completion is awaited until somebody commits or rolls it back."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from onecommit.app.context import CallerOwnedJobContext
from onecommit.domain.job import JobState
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.embedded import EmbeddedPostgres
from onecommit.telemetry.events import (
    AttemptFailed,
    CompletedThenRaised,
    ReceiptWithoutCompletion,
    ResolvedAttempt,
    UnresolvedAttempt,
)

from tests.clusters import MAJORS, Cluster, binaries
from tests.engine import Attempt, Engine
from tests.stores import Store
from tests.strict import StrictDatabase, strict_database
from tests.worker.harness import eventually

pytestmark = pytest.mark.pg

ROWS = "select count(*) from app.invoice"
ENDINGS = pytest.mark.parametrize("ending", ["commit", "rollback"])


@pytest.fixture(scope="module", params=MAJORS, ids=[f"pg{major}" for major in MAJORS])
def own_cluster(request) -> Iterator[Cluster]:
    """A server that prepares transactions; by default none does."""
    settings = {"max_prepared_transactions": "5"}
    with EmbeddedPostgres(bin_dir=binaries(request.param), settings=settings) as server:
        yield Cluster(major=request.param, server=server)


@pytest.fixture(scope="module")
def database(own_cluster: Cluster) -> Iterator[StrictDatabase]:
    with strict_database(own_cluster) as fresh:
        Store.of(fresh).close()  # makes the application's table
        yield fresh


@pytest.fixture
def engine(database: StrictDatabase) -> Iterator[Engine]:
    store = Store.of(database)
    store.empty()
    yield store.engine()
    store.close()


def prepare(database: StrictDatabase, attempt: Attempt) -> None:
    """What an application does that lets a coordinator decide; its connection is gone afterwards."""
    with psycopg.connect(database.login("caller"), autocommit=True) as connection:
        caller = Engine(connection, epoch=0).begin()
        caller.sql("insert into app.invoice values (%s)", attempt.job_id)
        caller.complete_job(attempt)
        caller.sql("prepare transaction 'ours'")


@ENDINGS
@pytest.mark.parametrize("authority", ["receipt", "lease"])
def test_nothing_decides_a_prepared_completion_but_its_end(
    database: StrictDatabase, engine: Engine, authority: str, ending: str
):
    """Neither the worker's own retry nor rescue, although nobody is connected who could commit."""
    [attempt] = engine.take()
    if authority == "lease":
        assert engine.materialize(attempt)
    prepare(database, attempt)
    status = engine.status(attempt)
    assert (status.state, status.holder_pid) == ("in_flight", 0)
    assert engine.finish([attempt], "retried", lock=True) == ["busy"]
    engine.retire()
    assert engine.rescue().rescued == 0
    engine.sql(f"{ending} prepared 'ours'")
    committed = ending == "commit"
    assert engine.status(attempt).state == ("closed" if committed else "open")
    assert engine.rescue().rescued == (not committed)
    assert engine.value(ROWS) == committed
    assert engine.state(attempt.job_id) == ("completed" if committed else "scheduled")


@ENDINGS
def test_a_prepared_completion_survives_a_crash_of_the_server(
    database: StrictDatabase, engine: Engine, ending: str
):
    """The lock of the attempt is there again before anybody can ask."""
    [attempt] = engine.take()
    engine.retire()
    prepare(database, attempt)
    database.cluster.server.restart("immediate")
    with database.connect() as connection:
        after = Engine(connection, epoch=engine.epoch)
        assert after.status(attempt).state == "in_flight"
        assert after.rescue().rescued == 0
        after.sql(f"{ending} prepared 'ours'")
        assert after.value(ROWS) == (ending == "commit")
        assert after.status(attempt).state == ("closed" if ending == "commit" else "open")


@ENDINGS
async def test_a_handler_that_prepares_is_waited_for_and_not_blamed(
    app, worker_of, events, database, ending
):
    """Its receipt is no mistake while the coordinator has not decided; the holder is reported as 0."""

    @app.caller_owned_job(retry=Retry(first=timedelta(hours=1)))
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        connection = await psycopg.AsyncConnection.connect(database.dsn)
        await connection.tpc_begin(connection.xid(1, "settle", str(ctx.job_id)))
        await connection.execute("insert into app.invoice values (%s)", (ctx.job_id,))
        receipt = await ctx.complete_in_tx(connection)
        await connection.tpc_prepare()
        await connection.close()
        return receipt

    job = await settle.enqueue()
    worker = await worker_of(reconcile_budget=0.2)
    assert (await events.wait_for(UnresolvedAttempt)).holder_pid == 0
    assert not events.of(ReceiptWithoutCompletion)
    with psycopg.connect(database.dsn, autocommit=True) as coordinator:
        [prepared] = coordinator.tpc_recover()
        getattr(coordinator, f"tpc_{ending}")(prepared)
        await events.wait_for(ResolvedAttempt)
        rows = coordinator.execute(f"{ROWS} where job_id = %s", (job.job_id,)).fetchone()[0]
    await eventually(lambda: not worker._machinery.reconciler.watchers, what="all is decided")
    committed = ending == "commit"
    state = (await app.jobs.get(job.job_id)).state
    assert state is (JobState.COMPLETED if committed else JobState.SCHEDULED)
    assert rows == committed
    assert len(events.of(ReceiptWithoutCompletion)) == (not committed)
    assert not events.of(AttemptFailed) + events.of(CompletedThenRaised)
