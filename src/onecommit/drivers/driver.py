"""What an adapter does, and which one belongs to a connection."""

from collections.abc import Coroutine
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, Protocol, TypeVar

from onecommit.calls.call import Call
from onecommit.errors import UsageError

T = TypeVar("T")


class AsyncCallerConnection(Protocol):
    """An open async connection or session: psycopg, asyncpg or SQLAlchemy."""

    def close(self) -> Coroutine[Any, Any, None]:
        """Told apart from a sync connection by what this returns."""


class SyncCallerConnection(Protocol):
    """An open sync connection or session: psycopg, psycopg2, SQLAlchemy or Django."""

    def close(self) -> None:
        """Told apart from an async connection by what this returns."""


class AsyncSavepoint(Protocol):
    """A savepoint that was set through an async driver's own means."""

    async def commit(self) -> None:
        """Release it: what was done since is part of the transaction."""

    async def rollback(self) -> None:
        """Take back what was done since; the transaction goes on."""


class SyncSavepoint(Protocol):
    """The same for a sync connection."""

    def commit(self) -> None:
        """Release it: what was done since is part of the transaction."""

    def rollback(self) -> None:
        """Take back what was done since; the transaction goes on."""


class AsyncDriver(Protocol):
    """An adapter of an async connection."""

    async def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""

    async def savepoint(self) -> AsyncSavepoint:
        """Set a savepoint in the transaction in which a call has run."""

    async def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""


class SyncDriver(Protocol):
    """An adapter of a sync connection."""

    def run(self, call: Call[T]) -> T:
        """Run the call inside the open transaction."""

    def savepoint(self) -> SyncSavepoint:
        """Set a savepoint in the transaction in which a call has run."""

    def sever(self) -> None:
        """Close the connection at once, so that its transaction cannot commit."""


# (top package, class) of a connection -> (module of the adapter, class, async?)
_ADAPTERS = {
    ("psycopg", "AsyncConnection"): ("psycopg", "AsyncPsycopgDriver", True),
    ("psycopg", "Connection"): ("psycopg", "PsycopgDriver", False),
    ("psycopg2", "connection"): ("psycopg2", "Psycopg2Driver", False),
    ("asyncpg", "Connection"): ("asyncpg", "AsyncpgDriver", True),
    ("asyncpg", "PoolConnectionProxy"): ("asyncpg", "AsyncpgDriver", True),
    # `django.db.connection` stands for the thread's `connections["default"]`.
    ("django", "ConnectionProxy"): ("django", "DjangoDriver", False),
    ("django", "BaseDatabaseWrapper"): ("django", "DjangoDriver", False),
    ("sqlalchemy", "AsyncConnection"): ("sqlalchemy", "AsyncSqlalchemyDriver", True),
    ("sqlalchemy", "AsyncSession"): ("sqlalchemy", "AsyncSqlalchemyDriver", True),
    ("sqlalchemy", "async_scoped_session"): ("sqlalchemy", "AsyncSqlalchemyDriver", True),
    ("sqlalchemy", "Connection"): ("sqlalchemy", "SqlalchemyDriver", False),
    ("sqlalchemy", "Session"): ("sqlalchemy", "SqlalchemyDriver", False),
    ("sqlalchemy", "scoped_session"): ("sqlalchemy", "SqlalchemyDriver", False),
}
_SUPPORTED = "psycopg, psycopg2, asyncpg, SQLAlchemy or Django"


def async_driver_for(connection: AsyncCallerConnection, *, schema: str) -> AsyncDriver:
    """The adapter of an async connection."""
    adapter, is_async = _adapter_of(connection)
    if not is_async:
        raise UsageError(
            "an async call was given a sync connection",
            remedy="Use an async connection here, or a `def` handler with this one.",
        )
    driver: AsyncDriver = adapter(connection, schema=schema)
    return driver


def sync_driver_for(connection: SyncCallerConnection, *, schema: str) -> SyncDriver:
    """The adapter of a sync connection."""
    adapter, is_async = _adapter_of(connection)
    if is_async:
        raise UsageError(
            "a sync call was given an async connection",
            remedy="Use a sync connection here, or an `async def` handler with this one.",
        )
    driver: SyncDriver = adapter(connection, schema=schema)
    return driver


def sever_if_sync(connection: object) -> None:
    """Close a sync connection that was given to an async call, so that its transaction cannot commit."""
    with suppress(
        Exception
    ):  # what is no connection, or cannot be closed here, is refused all the same
        adapter, is_async = _adapter_of(connection)
        if not is_async:
            adapter(connection, schema="").sever()


def is_async_connection(connection: object) -> bool:
    """Whether calls on this connection are awaited; raises for what is no connection."""
    return _adapter_of(connection)[1]


def _adapter_of(connection: object) -> tuple[Any, bool]:
    connection_type: Any = type(connection)
    return _adapter_of_type(connection_type)


@cache
def _adapter_of_type(connection_type: Any) -> tuple[Any, bool]:
    for base in connection_type.__mro__:
        found = _ADAPTERS.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            module, name, is_async = found
            return getattr(import_module(f"onecommit.drivers.{module}"), name), is_async
    raise UsageError(
        f"{connection_type.__module__}.{connection_type.__qualname__} is not a supported connection",
        remedy=f"Pass an open connection or session of {_SUPPORTED}; a pool or an engine is neither.",
    )
