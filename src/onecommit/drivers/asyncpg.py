"""asyncpg, also through its pool's proxy."""

from typing import Any, TypeVar

import asyncpg

from onecommit.calls.call import Call, Paramstyle, render
from onecommit.drivers.transaction import no_transaction, refusal_of

T = TypeVar("T")


class AsyncpgDriver:
    """Runs calls in the open transaction of an asyncpg connection."""

    def __init__(self, connection: Any, *, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    async def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""
        if not self._connection.is_in_transaction():
            raise no_transaction("`async with connection.transaction():`")
        statement = render(call.routine, self._schema, Paramstyle.NUMERIC)
        try:
            return call.read(await self._connection.fetch(statement, *call.arguments))
        except asyncpg.PostgresError as error:
            raise refusal_of(error, doing=call.routine.name) or error from error

    async def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        self._connection.terminate()
