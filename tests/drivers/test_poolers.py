"""Finalization through PgBouncer: one server connection, taken in turns by two clients of the same driver."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import asyncpg
import psycopg
import pytest

from onecommit import StaleAttempt
from onecommit.domain.evidence import AttemptState

from tests.drivers.callers import (
    Caller,
    Opened,
    asyncpg_plain,
    asyncpg_pool,
    psycopg2_plain,
    psycopg_async,
    psycopg_sync,
    sqlalchemy_async,
    sqlalchemy_sync,
)
from tests.drivers.conftest import Application, assert_cannot_commit, write
from tests.drivers.django_callers import DJANGO_CALLERS
from tests.drivers.sql_callers import SQL_CALLERS
from tests.pgbouncer import pgbouncer

pytestmark = pytest.mark.pg

TURNS = 7
"""More than the five uses after which psycopg prepares a statement."""

NO_CACHE = {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
NO_PREPARING = {"prepare_threshold": None}
# Each with what docs/how-to/poolers.md says to set, and nothing else.
DRIVERS: dict[str, Opened] = {
    "psycopg": partial(psycopg_sync, **NO_PREPARING),
    "psycopg-async": partial(psycopg_async, **NO_PREPARING),
    "psycopg2": psycopg2_plain,
    "asyncpg": partial(asyncpg_plain, statement_cache_size=0),
    "asyncpg-pool": partial(asyncpg_pool, statement_cache_size=0),
    "sqlalchemy-psycopg": sqlalchemy_sync("psycopg", session=True, connect_args=NO_PREPARING),
    "sqlalchemy-asyncpg": sqlalchemy_async("asyncpg", session=True, connect_args=NO_CACHE),
    "django": DJANGO_CALLERS["django"],
    "django-psycopg2": DJANGO_CALLERS["django-psycopg2"],
    "node-pg": SQL_CALLERS["node-pg"],
    "rust-tokio-postgres": SQL_CALLERS["rust-tokio-postgres"],
}


@pytest.fixture(params=["session", "transaction"])
def mode(request) -> str:
    return request.param


@pytest.fixture
def pooled(shared_database, mode: str) -> Iterator[str]:
    """The way to the database through a pooler; in transaction mode it has one server connection."""
    size = 1 if mode == "transaction" else 2
    caller = replace(shared_database, dsn=shared_database.login("caller"))
    with pgbouncer(caller, mode=mode, pool_size=size) as dsn:
        yield dsn


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS.keys())
async def test_finalization_keeps_its_promises_through_a_pooler(
    driver: Opened, pooled: str, application: Application
):
    async with driver(pooled) as first, driver(pooled) as second:
        for _ in range(TURNS):
            await settle(first, application)
            await settle(second, application)
    async with driver(pooled) as caller:
        await roll_back(caller, application)
        await settle(caller, application)
    async with driver(pooled) as caller:
        await be_refused(caller, application)
    async with driver(pooled) as caller:
        await settle(caller, application)


async def settle(caller: Caller, application: Application) -> None:
    context = await application.claim(sync=not caller.is_async)
    entry = await begin_anew(caller)
    await caller.complete(context)
    assert (await application.status(context)).state is AttemptState.IN_FLIGHT
    await caller.commit()
    assert (await application.status(context)).state is AttemptState.CLOSED
    assert entry in application.entries()


async def roll_back(caller: Caller, application: Application) -> None:
    context = await application.claim(sync=not caller.is_async)
    entry = await begin_anew(caller)
    await caller.complete(context)
    await caller.rollback()
    assert await application.is_open(context)
    assert entry not in application.entries()
    await application.cancel(context)


async def be_refused(caller: Caller, application: Application) -> None:
    context = await application.claim(sync=not caller.is_async)
    entry = await begin_anew(caller)
    await application.cancel(context)
    with pytest.raises(StaleAttempt):
        await caller.complete(context)
    await assert_cannot_commit(caller)
    assert entry not in application.entries()


async def begin_anew(caller: Caller) -> str:
    """Begin another transaction on the same connection."""
    if hasattr(caller, "_transaction"):  # asyncpg wants a new object for each
        caller._transaction = caller.connection.transaction()
    return await write(caller)


@pytest.mark.parametrize(
    ("driver", "complaint"),
    [
        (psycopg_sync, psycopg.errors.InvalidSqlStatementName),
        (asyncpg_plain, asyncpg.InvalidSQLStatementNameError),
    ],
    ids=["psycopg", "asyncpg"],
)
async def test_without_its_setting_a_driver_fails_and_commits_nothing(
    driver: Opened, complaint: type[Exception], application: Application
):
    """What was prepared on one server connection is unknown on the next one."""
    callers = replace(application.database, dsn=application.caller_dsn)
    with pgbouncer(callers, mode="transaction", pool_size=2) as dsn:
        async with driver(dsn) as first, driver(dsn) as second:
            for _ in range(TURNS):
                await settle(first, application)
            await write(second)  # takes the server connection that the first one had
            context = await application.claim(sync=not first.is_async)
            with pytest.raises(complaint):
                await begin_and_complete(first, context)
            await assert_cannot_commit(first)
            await second.rollback()
    assert await application.is_open(context)


async def begin_and_complete(caller: Caller, context) -> None:
    await begin_anew(caller)
    await caller.complete(context)
