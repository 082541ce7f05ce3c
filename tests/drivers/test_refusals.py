"""A connection on which a call could not be part of the caller's transaction is refused, with advice."""

from collections.abc import AsyncIterator, Iterator

import asyncpg
import psycopg
import psycopg2
import psycopg_pool
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from onecommit.errors import CapabilityMissing, SchemaInconsistent, SchemaMissing, UsageError

from tests.clusters import Database
from tests.drivers.callers import ASYNC_CALLERS, PythonCaller
from tests.drivers.conftest import WITH_ADAPTER, Application, assert_cannot_commit, write

pytestmark = pytest.mark.pg

NO_TRANSACTION = "no transaction open"


async def test_a_psycopg_autocommit_connection_without_a_transaction(application: Application):
    with application.database.connect() as connection:
        with pytest.raises(UsageError, match=NO_TRANSACTION) as caught:
            application.notify.in_tx(connection).enqueue(invoice_id=1)
        assert "connection.transaction()" in caught.value.remedy
        with connection.transaction():
            enqueued = application.notify.in_tx(connection).enqueue(invoice_id=1)
    assert await application.app.jobs.get(enqueued.job_id)


async def test_a_psycopg_connection_that_begins_by_itself(application: Application):
    """Without autocommit the enqueue may be the first statement of the transaction."""
    with psycopg.connect(application.caller_dsn) as connection:
        enqueued = application.notify.in_tx(connection).enqueue(invoice_id=1)
        assert await application.app.jobs.get(enqueued.job_id) is None
        connection.commit()
    assert await application.app.jobs.get(enqueued.job_id)


async def test_a_psycopg2_autocommit_connection(application: Application):
    connection = psycopg2.connect(application.caller_dsn)
    connection.autocommit = True
    with pytest.raises(UsageError, match=NO_TRANSACTION):
        application.notify.in_tx(connection).enqueue(invoice_id=1)
    connection.close()


async def test_an_asyncpg_connection_without_a_transaction(application: Application):
    connection = await asyncpg.connect(application.caller_dsn)
    with pytest.raises(UsageError, match=NO_TRANSACTION):
        await application.notify.in_tx(connection).enqueue(invoice_id=1)
    await connection.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
async def test_an_sqlalchemy_autocommit_connection(application: Application, driver: str):
    dsn = application.caller_dsn.replace("postgresql://", f"postgresql+{driver}://")
    engine = sqlalchemy.create_engine(dsn, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(UsageError, match=NO_TRANSACTION):
        application.notify.in_tx(connection).enqueue(invoice_id=1)
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_an_async_sqlalchemy_autocommit_connection(application: Application, driver: str):
    dsn = application.caller_dsn.replace("postgresql://", f"postgresql+{driver}://")
    engine = create_async_engine(dsn, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        with pytest.raises(UsageError, match=NO_TRANSACTION):
            await application.notify.in_tx(connection).enqueue(invoice_id=1)
    await engine.dispose()


async def test_completing_on_an_autocommit_connection_closes_it(application: Application):
    """The completion would commit without the rows; what follows must not commit either."""
    context = await application.claim(sync=True)
    with application.database.connect() as connection:
        with pytest.raises(UsageError, match=NO_TRANSACTION):
            context.complete_in_tx(connection)
        assert connection.closed
    assert await application.is_open(context)


async def test_a_transaction_that_has_failed(application: Application):
    with psycopg.connect(application.caller_dsn) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select 1 / 0")
        with pytest.raises(UsageError, match="already failed"):
            application.notify.in_tx(connection).enqueue(invoice_id=1)


async def test_a_pool_or_an_engine_is_no_connection(application: Application):
    pool = psycopg_pool.ConnectionPool(application.caller_dsn, open=False)
    engine = sqlalchemy.create_engine("postgresql+psycopg://")
    for thing in (pool, engine, object(), application.caller_dsn):
        with pytest.raises(UsageError, match="is not a supported connection") as caught:
            application.notify.in_tx(thing)
        assert application.caller_dsn not in str(caught.value)


@pytest.mark.parametrize("name", sorted(WITH_ADAPTER.keys() - ASYNC_CALLERS.keys()))
async def test_an_async_handler_is_not_given_a_sync_connection(application: Application, name: str):
    """It would block the event loop of every other handler; what was written on it cannot be committed."""
    context = await application.claim(sync=False)
    async with WITH_ADAPTER[name](application.caller_dsn) as caller:
        entry = await write(caller)
        with pytest.raises(UsageError, match="sync connection") as refused:
            await context.complete_in_tx(caller.connection)
        assert context.finalization_error is refused.value
        await assert_cannot_commit(caller)
    assert entry not in application.entries()
    assert await application.is_open(context)


async def test_a_sync_handler_is_not_given_an_async_connection(application: Application):
    context = await application.claim(sync=True)
    async with await psycopg.AsyncConnection.connect(application.caller_dsn) as connection:
        with pytest.raises(UsageError, match="async connection") as refused:
            context.complete_in_tx(connection)
    assert context.finalization_error is refused.value


async def test_a_database_without_the_schema(application: Application, postgres):
    """The caller's own connection leads to another database than the store's."""
    with (
        postgres.database() as other,
        psycopg.connect(other.dsn) as connection,
        pytest.raises(SchemaMissing, match="enqueue_job is not installed"),
    ):
        application.notify.in_tx(connection).enqueue(invoice_id=1)


@pytest.fixture
def stranger(shared_database: Database) -> Iterator[str]:
    """A role that may look into the schema and nothing else."""
    role = f"stranger_{shared_database.name}"
    with shared_database.connect() as owner:
        owner.execute(f"create role {role}; grant usage on schema onecommit to {role}")
        yield role
        owner.execute(f"drop owned by {role}; drop role {role}")


@pytest.fixture(params=WITH_ADAPTER.values(), ids=WITH_ADAPTER.keys())
async def any_role(request, application: Application) -> AsyncIterator[PythonCaller]:
    """A caller who can become any role: to say who is refused, the test is a superuser."""
    async with request.param(application.database.observer_dsn) as opened:
        yield opened


async def test_every_driver_says_which_capability_the_login_lacks(
    any_role: PythonCaller, application: Application, stranger: str
):
    await any_role.begin()
    await any_role.execute(f"set local role {stranger}")
    with pytest.raises(CapabilityMissing, match="lacks the capability producer") as caught:
        await any_role.enqueue(application.notify, {"invoice_id": 1})
    assert caught.value.needs == (("producer",),)
    await any_role.rollback()


async def test_every_driver_tells_a_changed_store_from_a_weak_login(
    any_role: PythonCaller, application: Application, stranger: str
):
    """What is refused inside of a routine no grant to the login would heal."""
    await any_role.begin()
    for routine in (
        "enqueue_job(text, text, text, integer, integer, jsonb, bigint)",
        "enqueue_jobs(text, text[], text[], jsonb, bigint)",
    ):
        await any_role.execute(f"alter function onecommit.{routine} security invoker")
        await any_role.execute(f"grant execute on function onecommit.{routine} to {stranger}")
    await any_role.execute(f"set local role {stranger}")
    with pytest.raises(SchemaInconsistent, match="a privilege is missing inside enqueue_job"):
        await any_role.enqueue(application.notify, {"invoice_id": 1})
    await any_role.rollback()
