"""Django's connections to PostgreSQL, through the psycopg or psycopg2 connection below each."""

from typing import Any, TypeVar

from django.db import transaction

from onecommit.calls.call import Call
from onecommit.drivers.driver import SyncDriver, SyncSavepoint, sync_driver_for
from onecommit.drivers.transaction import aborted_transaction, closed_connection, no_transaction
from onecommit.errors import UsageError

T = TypeVar("T")


class DjangoDriver:
    """Runs calls inside `transaction.atomic()` of `django.db.connection` or `connections[alias]`."""

    def __init__(self, connection: Any, *, schema: str) -> None:
        if getattr(connection, "vendor", None) != "postgresql":
            raise UsageError(
                "this Django object is no connection to PostgreSQL",
                remedy="Pass `connections[alias]` of a database whose engine is django.db.backends.postgresql.",
            )
        self._connection = connection
        self._schema = schema

    def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""
        self._require_transaction()
        with self._connection.wrap_database_errors:
            return self._below().run(call)

    def savepoint(self) -> SyncSavepoint:
        """Set a savepoint as an inner `atomic()` does, so that its on_commit callbacks go with it."""
        return _Savepoint(self._connection.alias)

    def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""
        if not self._connection.in_atomic_block:
            self._connection.close()
        elif self._connection.connection is not None:
            # Closed through Django, the outer atomic() would end as if it had committed.
            self._below().sever()

    def _below(self) -> SyncDriver:
        return sync_driver_for(self._connection.connection, schema=self._schema)

    def _require_transaction(self) -> None:
        self._connection.validate_thread_sharing()
        if self._connection.closed_in_transaction:
            raise closed_connection()
        if self._connection.get_autocommit():
            raise no_transaction("`with transaction.atomic():`")
        if self._connection.needs_rollback:
            raise aborted_transaction()


class _Savepoint:
    def __init__(self, alias: str) -> None:
        self._block = transaction.atomic(using=alias)
        self._block.__enter__()

    def commit(self) -> None:
        self._block.__exit__(None, None, None)

    def rollback(self) -> None:
        # The block rolls back for any exception and raises none of its own.
        self._block.__exit__(UsageError, None, None)
