# Generated from async_store.py by tools/generate_sync.py: edit that file, then `make sync`.
"""The store over our own connections."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self, TypeVar
from uuid import UUID

import psycopg
from psycopg import Connection, Cursor, IsolationLevel, sql
from psycopg.abc import PQGen, QueryNoTemplate
from psycopg.pq import ConnStatus, TransactionStatus

from onecommit.calls.call import Argument, Call, Paramstyle, Rows, render
from onecommit.calls.stores import store_status
from onecommit.domain.identity import Epoch
from onecommit.domain.settings import StoreSettings
from onecommit.errors import OnecommitError, StoreUnavailable
from onecommit.store.connecting import (
    SESSION,
    connection_string,
    milliseconds,
    readiness_of,
    register_loaders,
)
from onecommit.store.failures import CONFLICTS, failure_of, unreachable
from onecommit.store.identity import checked_epoch

T = TypeVar("T")
RV = TypeVar("RV")

_IS_LAST_TRY = (False, False, False, True)
_GRACE = timedelta(seconds=5)


class SyncStoreConnection(Connection[tuple[Any, ...]]):
    """A connection whose every operation ends: with an answer, or by giving the server up."""

    patience: float | None = None
    calls: Cursor[tuple[Any, ...]]
    readable: Callable[[], bool]

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for the server, but no longer than the patience of this connection."""
        limit = self.patience if timeout is None else timeout
        return super().wait(gen, interval=interval, timeout=limit)

    def fetch(self, statement: QueryNoTemplate, arguments: Sequence[Argument]) -> Rows:
        """Run one prepared statement and return its rows."""
        cursor = self.calls
        cursor.execute(statement, arguments, prepare=True)
        return cursor.fetchall()

    @property
    def is_idle(self) -> bool:
        """Whether the connection, as far as is known, can run the next call."""
        return (
            self.pgconn.status == ConnStatus.OK
            and self.pgconn.transaction_status == TransactionStatus.IDLE
        )

    @property
    def has_news(self) -> bool:
        """Whether the server said something to an idle connection: as a rule, good-bye."""
        return self.readable()


class SyncStoreTransaction:
    """Several calls in one transaction."""

    def __init__(self, connection: SyncStoreConnection, *, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def run(self, call: Call[T]) -> T:
        """Run one call; after an error the transaction can only be left."""
        statement = render(call.routine, self._schema, Paramstyle.FORMAT)
        try:
            return call.read(self._connection.fetch(statement, call.arguments))
        except psycopg.Error as error:
            raise _translated(error, doing=call.routine.name) from error

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Calls that an exception takes back alone."""
        with self._connection.transaction():
            yield


class SyncListener:
    """The notices of the store, on a connection of their own."""

    def __init__(self, connection: Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def notices(self, *, timeout: timedelta | None = None) -> Iterator[str]:
        """Payloads as they arrive; ends after `timeout` without one."""
        seconds = None if timeout is None else timeout.total_seconds()
        try:
            for notice in self._connection.notifies(timeout=seconds):
                yield notice.payload
        except psycopg.Error as error:
            raise _translated(error, doing="listening") from error


class SyncStore:
    """Runs calls in transactions of its own, over at most `max_connections` connections.

    Connections are made when they are needed and kept. Nothing runs in the background, so a server
    that comes back is found by the next call.
    """

    def __init__(self, settings: StoreSettings) -> None:
        self.settings = settings
        self._conninfo = connection_string(settings)
        self._idle: list[SyncStoreConnection] = []
        self._permits = threading.Semaphore(settings.max_connections)
        self._closed = False
        self._epoch: Epoch | None = None
        self._store_id: UUID | None = None

    @property
    def epoch(self) -> Epoch:
        """The runtime epoch that this process works under."""
        if self._epoch is None:
            raise OnecommitError("the store is not open", remedy="Call open() first.")
        return self._epoch

    @property
    def store_id(self) -> UUID:
        """The identity of the store."""
        if self._store_id is None:
            raise OnecommitError("the store is not open", remedy="Call open() first.")
        return self._store_id

    def open(self) -> Self:
        """Connect once and check that this is the store, schema and epoch that we are meant for."""
        try:
            status = self.run(store_status())
            self._epoch = checked_epoch(status, self.settings)
        except BaseException:
            self.close()
            raise
        self._store_id = status.store_id
        return self

    def close(self) -> None:
        """Close every idle connection; one in use is closed when its call ends."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, call: Call[T], *, timeout: timedelta | None = None) -> T:
        """Run one call in a READ COMMITTED transaction of its own.

        A conflict that the server rolled back is tried again. `timeout` bounds each wait for the
        server; after it the connection is given up and the outcome is unknown.
        """
        statement = render(call.routine, self.settings.schema, Paramstyle.FORMAT)
        for last in _IS_LAST_TRY:
            try:
                return call.read(self._fetch(statement, call.arguments, timeout))
            except psycopg.Error as error:
                if last or not isinstance(error, CONFLICTS):
                    raise _translated(error, doing=call.routine.name) from error
        raise AssertionError("the last try returns or raises")

    def _fetch(
        self, statement: str, arguments: Sequence[Argument], timeout: timedelta | None
    ) -> Rows:
        connection = self._acquire(timeout)
        try:
            rows = connection.fetch(statement, arguments)
            if not connection.autocommit:
                connection.commit()
            return rows
        finally:
            self._release(connection)

    @contextmanager
    def transaction(self) -> Iterator[SyncStoreTransaction]:
        """Run several calls in one READ COMMITTED transaction; an exception rolls it back."""
        connection = self._acquire(None)
        try:
            with connection.transaction():
                yield SyncStoreTransaction(connection, schema=self.settings.schema)
        except psycopg.Error as error:
            raise _translated(error, doing="the transaction") from error
        finally:
            self._release(connection)

    def transact(self, work: Callable[[SyncStoreTransaction], T]) -> T:
        """Do the work in one transaction, and all of it again after a conflict."""
        for last in _IS_LAST_TRY:
            try:
                with self.transaction() as transaction:
                    return work(transaction)
            except StoreUnavailable as error:
                if last or not isinstance(error.__cause__, CONFLICTS):
                    raise
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def listen(self) -> Iterator[SyncListener]:
        """Listen to the store's channel; through a transaction pooler this stays silent."""
        try:
            connection = Connection.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise unreachable(error) from error
        with connection:
            connection.execute(sql.SQL("listen {}").format(self._channel))
            yield SyncListener(connection)

    def notify(self, payload: str) -> None:
        """Send a notice to every listener of the store."""
        try:
            self._fetch("select pg_notify(%s, %s)", (self.settings.schema, payload), timeout=None)
        except psycopg.Error as error:
            raise _translated(error, doing="pg_notify") from error

    @property
    def _channel(self) -> sql.Identifier:
        return sql.Identifier(self.settings.schema)

    def _acquire(self, timeout: timedelta | None) -> SyncStoreConnection:
        if self._closed:
            raise OnecommitError("the store is closed")
        patience = (timeout or self.settings.operation_timeout + _GRACE).total_seconds()
        self._permit(patience)
        try:
            connection = self._take_idle() or self._connect()
        except BaseException:
            self._permits.release()
            raise
        connection.patience = patience
        return connection

    def _take_idle(self) -> SyncStoreConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.has_news:
                return connection
            connection.close()
        return None

    def _permit(self, seconds: float) -> None:
        try:
            if not self._permits.acquire(timeout=seconds):
                raise TimeoutError
        except TimeoutError as error:
            raise StoreUnavailable(
                f"all {self.settings.max_connections} connections of this process were in use",
                remedy="Raise max_connections, or run fewer operations at once.",
            ) from error

    def _release(self, connection: SyncStoreConnection) -> None:
        try:
            if self._closed or not connection.is_idle:
                # A connection in mid-operation is not worth a polite good-bye.
                connection.pgconn.finish()
            else:
                self._idle.append(connection)
        finally:
            self._permits.release()

    def _connect(self) -> SyncStoreConnection:
        try:
            connection = SyncStoreConnection.connect(
                self._conninfo, autocommit=True, prepare_threshold=0
            )
        except psycopg.Error as error:
            raise unreachable(error) from error
        try:
            self._configure(connection)
        except psycopg.Error as error:
            connection.pgconn.finish()
            raise unreachable(error) from error
        except BaseException:
            connection.pgconn.finish()
            raise
        return connection

    def _configure(self, connection: SyncStoreConnection) -> None:
        register_loaders(connection.adapters)
        connection.calls = connection.cursor(binary=True)
        connection.readable = readiness_of(connection.pgconn.socket)
        connection.patience = self.settings.connect_timeout.total_seconds()
        connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
        if self.settings.transaction_pooler:
            # A session setting would land on a server connection that others use next.
            connection.prepare_threshold = None
            connection.set_autocommit(False)
            return
        limit = f"{milliseconds(self.settings.operation_timeout)}ms"
        connection.execute(SESSION, (limit, limit), prepare=False)


def _translated(error: psycopg.Error, *, doing: str) -> Exception:
    return failure_of(error, doing=doing) or error
