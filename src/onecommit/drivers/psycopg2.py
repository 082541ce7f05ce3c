"""psycopg2."""

from typing import Any, TypeVar

import psycopg2
from psycopg2 import extensions

from onecommit.calls.call import Call, Paramstyle, render
from onecommit.drivers.driver import SyncSavepoint
from onecommit.drivers.transaction import (
    RELEASE_SAVEPOINT,
    ROLL_BACK_TO_SAVEPOINT,
    SET_SAVEPOINT,
    aborted_transaction,
    busy_connection,
    closed_connection,
    no_transaction,
    refusal_of,
)

T = TypeVar("T")


class Psycopg2Driver:
    """Runs calls in the open transaction of a psycopg2 connection."""

    def __init__(self, connection: Any, *, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""
        self._require_transaction()
        statement = render(call.routine, self._schema, Paramstyle.FORMAT)
        try:
            with self._connection.cursor(cursor_factory=extensions.cursor) as cursor:
                cursor.execute(statement, call.arguments)
                return call.read(cursor.fetchall())
        except psycopg2.Error as error:
            raise refusal_of(error, doing=call.routine.name) or error from error

    def savepoint(self) -> SyncSavepoint:
        """Set a savepoint."""
        savepoint = _Savepoint(self._connection)
        savepoint.execute(SET_SAVEPOINT)
        return savepoint

    def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        self._connection.close()

    def _require_transaction(self) -> None:
        if self._connection.closed:
            raise closed_connection()
        match self._connection.info.transaction_status:
            case extensions.TRANSACTION_STATUS_IDLE if self._connection.autocommit:
                raise no_transaction("set `connection.autocommit = False` before them")
            case extensions.TRANSACTION_STATUS_INERROR:
                raise aborted_transaction()
            case extensions.TRANSACTION_STATUS_ACTIVE:
                raise busy_connection()
            case _:
                pass


class _Savepoint:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def commit(self) -> None:
        self.execute(RELEASE_SAVEPOINT)

    def rollback(self) -> None:
        self.execute(ROLL_BACK_TO_SAVEPOINT)
        self.execute(RELEASE_SAVEPOINT)
