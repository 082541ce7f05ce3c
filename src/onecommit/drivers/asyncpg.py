"""asyncpg, also through its pool's proxy."""

from contextlib import suppress
from typing import Any, TypeVar

import asyncpg

from onecommit.calls.call import Call, Paramstyle, render
from onecommit.drivers.driver import AsyncSavepoint
from onecommit.drivers.transaction import (
    busy_connection,
    closed_connection,
    no_transaction,
    refusal_of,
)

T = TypeVar("T")


class AsyncpgDriver:
    """Runs calls in the open transaction of an asyncpg connection."""

    def __init__(self, connection: Any, *, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    async def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""
        self._require_transaction()
        statement = render(call.routine, self._schema, Paramstyle.NUMERIC)
        try:
            return call.read(await self._connection.fetch(statement, *call.arguments))
        except asyncpg.PostgresError as error:
            raise refusal_of(error, doing=call.routine.name) or error from error
        except asyncpg.InterfaceError as error:
            raise busy_connection() if _says_busy(error) else error from error

    async def savepoint(self) -> AsyncSavepoint:
        """Set a savepoint."""
        transaction = self._connection.transaction()
        await transaction.start()
        savepoint: AsyncSavepoint = transaction
        return savepoint

    async def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        with suppress(asyncpg.InterfaceError):  # it went back to its pool, which has rolled back
            self._connection.terminate()

    def _require_transaction(self) -> None:
        try:
            closed = self._connection.is_closed()
        except asyncpg.InterfaceError as error:  # of a pool that has taken it back
            raise closed_connection() from error
        if closed:
            raise closed_connection()
        if not self._connection.is_in_transaction():
            raise no_transaction("`async with connection.transaction():`")


def _says_busy(error: asyncpg.InterfaceError) -> bool:
    # This one has no class of its own.
    return "another operation is in progress" in str(error)
