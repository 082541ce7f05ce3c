"""Whatever kind of transaction a driver's caller has open: it commits wholly, or it is told why it cannot."""

import asyncio

import pytest

from onecommit import StaleAttempt, schema
from onecommit.domain.evidence import AttemptState
from onecommit.errors import EpochFenced, SchemaMissing, TransactionDeadlocked, UsageError

from tests import observe
from tests.drivers.callers import Caller, PythonCaller
from tests.drivers.conftest import (
    CALLERS,
    WITH_ADAPTER,
    Application,
    add_entry,
    assert_cannot_commit,
    write,
)
from tests.strict import strict_database

pytestmark = pytest.mark.pg

ATTEMPT_LOCK = """
select pg_advisory_xact_lock(onecommit.lock_class('onecommit.completion'), onecommit.attempt_key(%s, %s))
"""
LEVELS = ("read committed", "repeatable read", "serializable")


def sqlstate_of(error: BaseException | None) -> str | None:
    """The server's code, however deep a layer has put it."""
    while error is not None:
        code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if code is not None:
            return code
        error = getattr(error, "orig", None) or error.__cause__
    return None


@pytest.mark.parametrize("level", LEVELS)
async def test_rows_and_completion_commit_together_at_every_isolation_level(
    caller: Caller, application: Application, level: str
):
    context = await application.claim(sync=not caller.is_async)
    await caller.begin()
    await caller.execute(f"set transaction isolation level {level}")
    entry = await add_entry(caller)
    await caller.complete(context)
    await caller.commit()
    assert (await application.status(context)).state is AttemptState.CLOSED
    assert entry in application.entries()


async def test_a_race_lost_under_read_committed_is_a_stale_attempt(caller, application):
    context = await application.claim(sync=not caller.is_async)
    await caller.begin()
    await caller.execute("set transaction isolation level read committed")
    entry = await add_entry(caller)
    await application.cancel(context)
    with pytest.raises(StaleAttempt):
        await caller.complete(context)
    await assert_cannot_commit(caller)
    assert entry not in application.entries()


# One of each kind of error: a deadlock takes a second.
@pytest.mark.parametrize("name", ["psycopg", "psycopg2", "asyncpg", "sqlalchemy-asyncpg", "django"])
async def test_a_deadlock_is_told_as_one_that_can_be_tried_again(
    application: Application, name: str
):
    """By the same error through every driver; the connection is closed as after any other."""
    async with WITH_ADAPTER[name](application.caller_dsn) as caller:
        context = await application.claim(sync=not caller.is_async)
        entry = await write(caller)
        await caller.execute("select pg_advisory_xact_lock(7)")
        with application.database.connect() as other, other.transaction(force_rollback=True):
            other.execute("set local deadlock_timeout = '1h'")  # whose turn comes first is ended
            other.execute(ATTEMPT_LOCK, (context.job_id, 1))
            waiting = asyncio.create_task(
                asyncio.to_thread(other.execute, "select pg_advisory_xact_lock(7)")
            )
            with application.database.connect() as observer:
                await asyncio.to_thread(
                    observe.wait_until_blocked, observer, observe.backend_pid(other)
                )
            with pytest.raises(
                TransactionDeadlocked, match="waited for each other in complete_job"
            ):
                await caller.complete(context)
            await waiting
        await assert_cannot_commit(caller)
        assert entry not in application.entries()
        assert await application.is_open(context)


@pytest.mark.parametrize("level", LEVELS[1:])
async def test_a_race_lost_under_a_higher_level_is_the_drivers_40001(caller, application, level):
    """The winner is invisible to this snapshot, so only a new transaction could tell who it was."""
    context = await application.claim(sync=not caller.is_async)
    await caller.begin()
    await caller.execute(f"set transaction isolation level {level}")
    entry = await add_entry(caller)
    await application.cancel(context)
    with pytest.raises(Exception) as caught:  # noqa: PT011  each driver has its own error
        await caller.complete(context)
    assert sqlstate_of(caught.value) == "40001"
    await assert_cannot_commit(caller)
    assert entry not in application.entries()


async def test_a_read_only_transaction_cannot_complete(caller, application):
    context = await application.claim(sync=not caller.is_async)
    await caller.begin()
    await caller.execute("set transaction read only")
    with pytest.raises(UsageError, match="read-only"):
        await caller.complete(context)
    await assert_cannot_commit(caller)
    assert await application.is_open(context)


async def test_a_transaction_that_has_failed_cannot_complete(caller, application):
    """An error that the handler caught leaves a transaction in which nothing can succeed."""
    context = await application.claim(sync=not caller.is_async)
    entry = await write(caller)
    with pytest.raises(Exception):  # noqa: B017, PT011  each driver has its own error
        await caller.execute("select 1 / 0")
    with pytest.raises(UsageError, match="already failed"):
        await caller.complete(context)
    await assert_cannot_commit(caller)
    assert await application.is_open(context)
    assert entry not in application.entries()


async def test_an_autocommit_connection_is_refused_with_advice(
    python_caller: PythonCaller, application
):
    """Each statement would commit by itself, so rows and completion would not share a commit."""
    context = await application.claim(sync=not python_caller.is_async)
    await python_caller.autocommit()
    with pytest.raises(UsageError, match="no transaction open") as caught:
        await python_caller.enqueue(application.notify, {"invoice_id": 7})
    assert "Open one" in caught.value.remedy
    with pytest.raises(UsageError, match="no transaction open"):
        await python_caller.complete(context)
    assert await application.is_open(context)


async def test_a_token_means_nothing_in_another_store(application, postgres, driver):
    """The other database has the schema, the same epoch even, and no such attempt."""
    with strict_database(postgres) as other:
        with other.connect() as connection:
            connection.execute("create table ledger (entry text primary key)")
        async with driver(other.login("caller")) as caller:
            context = await application.claim(sync=not caller.is_async)
            await write(caller)
            with pytest.raises(StaleAttempt):
                await caller.complete(context)
            await assert_cannot_commit(caller)
        with other.connect() as connection:
            assert connection.execute("select count(*) from ledger").fetchone() == (0,)
    assert await application.is_open(context)


async def test_a_database_without_the_schema_says_so(application, postgres, driver):
    with postgres.database() as other:
        async with driver(other.dsn) as caller:
            context = await application.claim(sync=not caller.is_async)
            await caller.begin()
            await caller.execute("create table ledger (entry text primary key)")
            with pytest.raises(SchemaMissing, match="complete_job is not installed"):
                await caller.complete(context)
            await assert_cannot_commit(caller)
    assert await application.is_open(context)


async def test_an_attempt_of_an_earlier_epoch_cannot_complete(caller, application):
    context = await application.claim(sync=not caller.is_async)
    schema.rotate_epoch(
        application.database.migrator_dsn,
        actor="test",
        reason="test",
        expected=application.store.epoch,
    )
    entry = await write(caller)
    with pytest.raises(EpochFenced):
        await caller.complete(context)
    await assert_cannot_commit(caller)
    assert entry not in application.entries()


@pytest.fixture(params=CALLERS.values(), ids=CALLERS.keys())
def driver(request):
    """How to open a connection of each driver."""
    return request.param
