"""The ways in which an application holds a transaction: one small harness for each driver."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import asyncpg
import psycopg
import psycopg2
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from onecommit.app.job import Job
from onecommit.domain.token import FinalizationReceipt

Inside = Callable[[], Awaitable[Any]]


class Caller(Protocol):
    """An application's connection, its driver, and how its users write what they write."""

    is_async: bool
    tells: bool
    """Whether a commit of a transaction that has failed is told from one that succeeded."""

    async def begin(self) -> None:
        """Open the transaction, where the first statement does not."""

    async def execute(self, statement: str) -> None: ...
    async def commit(self) -> None:
        """Commit; raises if the driver, or what it returned, tells that nothing was committed."""

    async def rollback(self) -> None: ...
    async def close(self) -> None:
        """Close the connection itself, a session's too."""

    async def savepoint(self, inside: Inside) -> None:
        """Run something inside the savepoint that the driver's users would write."""

    async def enqueue(self, job: Job, *items: dict[str, Any]) -> list[int]:
        """Enqueue a job for each item; return their ids."""

    async def complete(self, context: Any) -> FinalizationReceipt:
        """Complete the attempt as a handler that uses this driver does."""


class PythonCaller(Caller, Protocol):
    """One whose driver has an adapter."""

    connection: Any

    async def autocommit(self) -> None:
        """Have each statement commit by itself."""

    async def block(self, inside: Inside) -> None:
        """Run something inside the transaction block that the driver's users would write."""


class _SyncCaller:
    is_async = False
    tells = True

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        """The first statement begins the transaction."""

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()

    async def enqueue(self, job: Job, *items: dict[str, Any]) -> list[int]:
        producer = job.in_tx(self.connection)
        if len(items) == 1:
            return [producer.enqueue(**items[0]).job_id]
        return [enqueued.job_id for enqueued in producer.enqueue_many(items)]

    async def complete(self, context: Any) -> FinalizationReceipt:
        return context.complete_in_tx(self.connection)


class _AsyncCaller:
    is_async = True
    tells = True

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        """The first statement begins the transaction."""

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()

    async def enqueue(self, job: Job, *items: dict[str, Any]) -> list[int]:
        producer = job.in_tx(self.connection)
        if len(items) == 1:
            return [(await producer.enqueue(**items[0])).job_id]
        return [enqueued.job_id for enqueued in await producer.enqueue_many(items)]

    async def complete(self, context: Any) -> FinalizationReceipt:
        return await context.complete_in_tx(self.connection)


class PsycopgCaller(_SyncCaller):
    async def execute(self, statement: str) -> None:
        self.connection.execute(statement)

    async def autocommit(self) -> None:
        self.connection.autocommit = True

    async def block(self, inside: Inside) -> None:
        with self.connection.transaction():
            await inside()

    savepoint = block  # the same call, if a transaction is open


class AsyncPsycopgCaller(_AsyncCaller):
    async def execute(self, statement: str) -> None:
        await self.connection.execute(statement)

    async def autocommit(self) -> None:
        await self.connection.set_autocommit(True)

    async def block(self, inside: Inside) -> None:
        async with self.connection.transaction():
            await inside()

    savepoint = block


class Psycopg2Caller(_SyncCaller):
    async def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    async def autocommit(self) -> None:
        self.connection.autocommit = True

    async def block(self, inside: Inside) -> None:
        with self.connection:
            await inside()

    async def savepoint(self, inside: Inside) -> None:
        await self.execute("savepoint ours")
        await inside()
        await self.execute("release savepoint ours")


class AsyncpgCaller(_AsyncCaller):
    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._transaction = connection.transaction()

    async def begin(self) -> None:
        await self._transaction.start()

    async def execute(self, statement: str) -> None:
        await self.connection.execute(statement)

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def autocommit(self) -> None:
        """It is unless a transaction was begun."""

    async def block(self, inside: Inside) -> None:
        async with self.connection.transaction():
            await inside()

    savepoint = block


class SqlalchemyCaller(_SyncCaller):
    async def execute(self, statement: str) -> None:
        self.connection.execute(sqlalchemy.text(statement))

    async def close(self) -> None:
        """A Session that is closed may be used again; its connection may not."""
        given = self.connection
        (given.connection() if isinstance(given, Session) else given).close()

    async def autocommit(self) -> None:
        given = self.connection
        options = {"isolation_level": "AUTOCOMMIT"}
        if isinstance(given, Session):
            given.connection(execution_options=options)
        else:
            given.execution_options(**options)

    async def block(self, inside: Inside) -> None:
        with self.connection.begin():
            await inside()

    async def savepoint(self, inside: Inside) -> None:
        with self.connection.begin_nested():
            await inside()


class AsyncSqlalchemyCaller(_AsyncCaller):
    async def execute(self, statement: str) -> None:
        await self.connection.execute(sqlalchemy.text(statement))

    async def close(self) -> None:
        given = self.connection
        await (await given.connection() if isinstance(given, AsyncSession) else given).close()

    async def autocommit(self) -> None:
        given = self.connection
        options = {"isolation_level": "AUTOCOMMIT"}
        if isinstance(given, AsyncSession):
            await given.connection(execution_options=options)
        else:
            await given.execution_options(**options)

    async def block(self, inside: Inside) -> None:
        async with self.connection.begin():
            await inside()

    async def savepoint(self, inside: Inside) -> None:
        async with self.connection.begin_nested():
            await inside()


Opened = Callable[[str], AbstractAsyncContextManager[Caller]]


@asynccontextmanager
async def psycopg_sync(dsn: str, **options: Any) -> AsyncIterator[Caller]:
    with psycopg.connect(dsn, **options) as connection:
        yield PsycopgCaller(connection)


@asynccontextmanager
async def psycopg_sync_dict_rows(dsn: str) -> AsyncIterator[Caller]:
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        yield PsycopgCaller(connection)


@asynccontextmanager
async def psycopg_async(dsn: str, **options: Any) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(dsn, **options) as connection:
        yield AsyncPsycopgCaller(connection)


@asynccontextmanager
async def psycopg2_plain(dsn: str) -> AsyncIterator[Caller]:
    connection = psycopg2.connect(dsn)
    try:
        yield Psycopg2Caller(connection)
    finally:
        connection.close()


@asynccontextmanager
async def asyncpg_plain(dsn: str, **options: Any) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(dsn, **options)
    try:
        yield AsyncpgCaller(connection)
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pool(dsn: str, **options: Any) -> AsyncIterator[Caller]:
    async with (
        asyncpg.create_pool(dsn, min_size=0, max_size=1, **options) as pool,
        pool.acquire() as connection,
    ):
        yield AsyncpgCaller(connection)


def sqlalchemy_sync(driver: str, *, session: bool, **options: Any) -> Opened:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Caller]:
        engine = sqlalchemy.create_engine(_url(dsn, driver), **options)
        try:
            with Session(engine) if session else engine.connect() as connection:
                yield SqlalchemyCaller(connection)
        finally:
            engine.dispose()

    return opened


def sqlalchemy_async(driver: str, *, session: bool, **options: Any) -> Opened:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(_url(dsn, driver), **options)
        try:
            async with AsyncSession(engine) if session else engine.connect() as connection:
                yield AsyncSqlalchemyCaller(connection)
        finally:
            await engine.dispose()

    return opened


def _url(dsn: str, driver: str) -> str:
    return dsn.replace("postgresql://", f"postgresql+{driver}://")


PYTHON_CALLERS: dict[str, Opened] = {
    "psycopg": psycopg_sync,
    "psycopg-dict-rows": psycopg_sync_dict_rows,
    "psycopg-async": psycopg_async,
    "psycopg2": psycopg2_plain,
    "asyncpg": asyncpg_plain,
    "asyncpg-pool": asyncpg_pool,
    "sqlalchemy-psycopg": sqlalchemy_sync("psycopg", session=False),
    "sqlalchemy-psycopg-session": sqlalchemy_sync("psycopg", session=True),
    "sqlalchemy-psycopg2-session": sqlalchemy_sync("psycopg2", session=True),
    "sqlalchemy-asyncpg": sqlalchemy_async("asyncpg", session=False),
    "sqlalchemy-asyncpg-session": sqlalchemy_async("asyncpg", session=True),
    "sqlalchemy-psycopg-async": sqlalchemy_async("psycopg", session=False),
    "sqlalchemy-psycopg-async-session": sqlalchemy_async("psycopg", session=True),
}
ASYNC_CALLERS = {
    name: opened for name, opened in PYTHON_CALLERS.items() if "asyncpg" in name or "async" in name
}
