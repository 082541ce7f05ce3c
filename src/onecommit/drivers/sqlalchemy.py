"""SQLAlchemy connections and sessions, sync and async, whatever PostgreSQL driver lies below."""

from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InvalidRequestError, PendingRollbackError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from onecommit.calls.call import Call, Paramstyle, render
from onecommit.drivers.driver import AsyncSavepoint, SyncSavepoint
from onecommit.drivers.transaction import (
    aborted_transaction,
    closed_connection,
    no_transaction,
    refusal_of,
)

T = TypeVar("T")


class SqlalchemyDriver:
    """Runs calls in the transaction of a Connection or Session, which begins by itself."""

    def __init__(
        self, connection: Connection | Session | scoped_session[Any], *, schema: str
    ) -> None:
        self._given = connection() if isinstance(connection, scoped_session) else connection
        self._schema = schema
        self._used: Connection | None = None

    def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""
        connection = self._used = self._open_connection()
        dbapi_connection: Any = connection.connection.dbapi_connection
        if dbapi_connection.autocommit:
            raise no_transaction("without the AUTOCOMMIT isolation level")
        numeric = connection.dialect.paramstyle.startswith("numeric")
        paramstyle = Paramstyle.NUMERIC if numeric else Paramstyle.FORMAT
        statement = render(call.routine, self._schema, paramstyle)
        try:
            return call.read(connection.exec_driver_sql(statement, call.arguments).fetchall())
        except DBAPIError as error:
            # The layer over asyncpg has errors of its own; the server's is their cause.
            original = getattr(error.orig, "__cause__", None) or error.orig
            raise refusal_of(original, doing=call.routine.name) or error from error

    def savepoint(self) -> SyncSavepoint:
        """Set a savepoint; a Session knows which of its objects it concerns."""
        return self._given.begin_nested()

    def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        if self._used is None and self._given.in_transaction():  # given where an async one belongs
            self._used = self._open_connection()
        if self._used is not None and not self._used.closed and not self._used.invalidated:
            _close_now(self._used.connection.driver_connection)
            self._used.invalidate()

    def _open_connection(self) -> Connection:
        given = self._given
        try:
            connection = given.connection() if isinstance(given, Session) else given
        except PendingRollbackError as error:
            raise aborted_transaction() from error
        except InvalidRequestError as error:
            raise closed_connection() from error
        if connection.closed or connection.invalidated:
            raise closed_connection()
        return connection


class AsyncSqlalchemyDriver:
    """Runs calls in the transaction of an AsyncConnection or AsyncSession."""

    def __init__(
        self,
        connection: AsyncConnection | AsyncSession | async_scoped_session[Any],
        *,
        schema: str,
    ) -> None:
        self._given = connection() if isinstance(connection, async_scoped_session) else connection
        self._schema = schema
        self._driver: SqlalchemyDriver | None = None

    async def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""

        def run_sync(connection: Connection | Session) -> T:
            self._driver = SqlalchemyDriver(connection, schema=self._schema)
            return self._driver.run(call)

        return await self._given.run_sync(run_sync)

    async def savepoint(self) -> AsyncSavepoint:
        """Set a savepoint; a session knows which of its objects it concerns."""
        return await self._given.begin_nested()

    async def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        if self._driver is not None:
            driver = self._driver
            await self._given.run_sync(lambda _: driver.sever())


def _close_now(connection: Any) -> None:
    """Close a driver's own connection without a word to the server, also where close() is async."""
    match connection:
        case _ if hasattr(connection, "pgconn"):
            connection.pgconn.finish()
        case _ if hasattr(connection, "terminate"):
            connection.terminate()
        case _:
            connection.close()
