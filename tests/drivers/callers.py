"""The ways in which an application holds a transaction: one small harness for each driver."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import asyncpg
import psycopg
import psycopg2
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session


class Caller(Protocol):
    """An application's connection."""

    connection: Any
    is_async: bool

    async def begin(self) -> None:
        """Open the transaction, where the first statement does not."""

    async def execute(self, statement: str) -> None: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def savepoint(self, inside: Callable[[], Awaitable[Any]]) -> None:
        """Run something inside the savepoint that the driver's users would write."""


class _BeginsByItself:
    async def begin(self) -> None:
        """The first statement begins the transaction."""


class PsycopgCaller(_BeginsByItself):
    is_async = False

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    async def execute(self, statement: str) -> None:
        self.connection.execute(statement)

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def savepoint(self, inside) -> None:
        with self.connection.transaction():
            await inside()


class AsyncPsycopgCaller(_BeginsByItself):
    is_async = True

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self.connection = connection

    async def execute(self, statement: str) -> None:
        await self.connection.execute(statement)

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def savepoint(self, inside) -> None:
        async with self.connection.transaction():
            await inside()


class Psycopg2Caller(_BeginsByItself):
    is_async = False

    def __init__(self, connection) -> None:
        self.connection = connection

    async def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def savepoint(self, inside) -> None:
        await self.execute("savepoint ours")
        await inside()
        await self.execute("release savepoint ours")


class AsyncpgCaller:
    is_async = True

    def __init__(self, connection) -> None:
        self.connection = connection
        self._transaction = connection.transaction()

    async def begin(self) -> None:
        await self._transaction.start()

    async def execute(self, statement: str) -> None:
        await self.connection.execute(statement)

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def savepoint(self, inside) -> None:
        async with self.connection.transaction():
            await inside()


class SqlalchemyCaller(_BeginsByItself):
    is_async = False

    def __init__(self, connection: sqlalchemy.Connection | Session) -> None:
        self.connection = connection

    async def execute(self, statement: str) -> None:
        self.connection.execute(sqlalchemy.text(statement))

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def savepoint(self, inside) -> None:
        with self.connection.begin_nested():
            await inside()


class AsyncSqlalchemyCaller(_BeginsByItself):
    is_async = True

    def __init__(self, connection) -> None:
        self.connection = connection

    async def execute(self, statement: str) -> None:
        await self.connection.execute(sqlalchemy.text(statement))

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def savepoint(self, inside) -> None:
        async with self.connection.begin_nested():
            await inside()


@asynccontextmanager
async def psycopg_sync(dsn: str) -> AsyncIterator[Caller]:
    with psycopg.connect(dsn) as connection:
        yield PsycopgCaller(connection)


@asynccontextmanager
async def psycopg_sync_dict_rows(dsn: str) -> AsyncIterator[Caller]:
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        yield PsycopgCaller(connection)


@asynccontextmanager
async def psycopg_async(dsn: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield AsyncPsycopgCaller(connection)


@asynccontextmanager
async def psycopg2_plain(dsn: str) -> AsyncIterator[Caller]:
    connection = psycopg2.connect(dsn)
    try:
        yield Psycopg2Caller(connection)
    finally:
        connection.close()


@asynccontextmanager
async def asyncpg_plain(dsn: str) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(dsn)
    try:
        yield AsyncpgCaller(connection)
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pool(dsn: str) -> AsyncIterator[Caller]:
    async with (
        asyncpg.create_pool(dsn, min_size=0, max_size=1) as pool,
        pool.acquire() as connection,
    ):
        yield AsyncpgCaller(connection)


def sqlalchemy_sync(driver: str, *, session: bool):
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Caller]:
        engine = sqlalchemy.create_engine(dsn.replace("postgresql://", f"postgresql+{driver}://"))
        try:
            with Session(engine) if session else engine.connect() as connection:
                yield SqlalchemyCaller(connection)
        finally:
            engine.dispose()

    return opened


def sqlalchemy_async(driver: str, *, session: bool):
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(dsn.replace("postgresql://", f"postgresql+{driver}://"))
        try:
            async with AsyncSession(engine) if session else engine.connect() as connection:
                yield AsyncSqlalchemyCaller(connection)
        finally:
            await engine.dispose()

    return opened


CALLERS = {
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
