"""psycopg 3, async and sync."""

from typing import Any, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from onecommit.calls.call import Call, Paramstyle, render
from onecommit.drivers.driver import AsyncSavepoint, SyncSavepoint
from onecommit.drivers.transaction import (
    RELEASE_SAVEPOINT,
    ROLL_BACK_TO_SAVEPOINT,
    SET_SAVEPOINT,
    aborted_transaction,
    busy_connection,
    closed_connection,
    in_pipeline,
    no_transaction,
    refusal_of,
)

T = TypeVar("T")


class AsyncPsycopgDriver:
    """Runs calls in the open transaction of a psycopg AsyncConnection."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    async def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""
        _require_transaction(self._connection)
        statement = render(call.routine, self._schema, Paramstyle.FORMAT)
        try:
            # Not the connection's own factory: the placeholders of raw cursors are others.
            async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
                await cursor.execute(statement.encode(), call.arguments)
                return call.read(await cursor.fetchall())
        except psycopg.Error as error:
            raise refusal_of(error, doing=call.routine.name) or error from error

    async def savepoint(self) -> AsyncSavepoint:
        """Set a savepoint."""
        await self._connection.execute(SET_SAVEPOINT)
        return _AsyncPsycopgSavepoint(self._connection)

    async def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        self._connection.pgconn.finish()


class PsycopgDriver:
    """Runs calls in the open transaction of a psycopg Connection."""

    def __init__(self, connection: psycopg.Connection[Any], *, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""
        _require_transaction(self._connection)
        statement = render(call.routine, self._schema, Paramstyle.FORMAT)
        try:
            with psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor:
                cursor.execute(statement.encode(), call.arguments)
                return call.read(cursor.fetchall())
        except psycopg.Error as error:
            raise refusal_of(error, doing=call.routine.name) or error from error

    def savepoint(self) -> SyncSavepoint:
        """Set a savepoint."""
        self._connection.execute(SET_SAVEPOINT)
        return _PsycopgSavepoint(self._connection)

    def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        self._connection.pgconn.finish()


class _AsyncPsycopgSavepoint:
    # The driver's own block would insist on its order among the caller's blocks, also those of a task that ends.
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def commit(self) -> None:
        await self._connection.execute(RELEASE_SAVEPOINT)

    async def rollback(self) -> None:
        await self._connection.execute(ROLL_BACK_TO_SAVEPOINT)
        await self._connection.execute(RELEASE_SAVEPOINT)


class _PsycopgSavepoint:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def commit(self) -> None:
        self._connection.execute(RELEASE_SAVEPOINT)

    def rollback(self) -> None:
        self._connection.execute(ROLL_BACK_TO_SAVEPOINT)
        self._connection.execute(RELEASE_SAVEPOINT)


def _require_transaction(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
) -> None:
    if connection.closed:
        raise closed_connection()
    if connection.info.pipeline_status != PipelineStatus.OFF:
        raise in_pipeline()
    match connection.info.transaction_status:
        # Without autocommit the driver begins a transaction with the first statement: this one may be it.
        case TransactionStatus.IDLE if connection.autocommit:
            raise no_transaction("`with connection.transaction():`")
        case TransactionStatus.INERROR:
            raise aborted_transaction()
        case TransactionStatus.ACTIVE:
            raise busy_connection()
        case _:
            pass
