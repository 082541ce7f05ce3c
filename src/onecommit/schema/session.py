"""A direct connection to the server, and the owner's session that holds the migration lock."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import Connection, IsolationLevel, conninfo, errors

from onecommit.domain.arguments import checked_text
from onecommit.domain.capability import MIGRATOR, Needs, lacking
from onecommit.errors import OnecommitError, SchemaError, StoreUnavailable
from onecommit.schema.lock import Patience, migration_lock, milliseconds
from onecommit.store.failures import unreachable

CONNECT_TIMEOUT_SECONDS = 5

# A connection option, and the libpq variable that would set it if the default did not stand in the way.
_DEFAULTS = {
    "connect_timeout": ("PGCONNECT_TIMEOUT", str(CONNECT_TIMEOUT_SECONDS)),
    "application_name": ("PGAPPNAME", "onecommit schema"),
    "keepalives_idle": (None, "10"),
    "keepalives_interval": (None, "5"),
    "keepalives_count": (None, "3"),
}

# What a role or database may have set and what would end an owner's session half-way.
_UNLIMITED = (
    "statement_timeout",
    "transaction_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
)


@contextmanager
def open_connection(dsn: str, *, needs: Needs = MIGRATOR) -> Iterator[Connection]:
    """An autocommit connection; failures become our errors, which repeat nothing of the DSN.

    It sets nothing for the session: behind a pooler that would stay with the next client. `needs` is the
    capability that is named if the server refuses something.
    """
    with _connect(dsn) as connection, translated_errors(needs):
        yield connection


@contextmanager
def owner_session(dsn: str, *, schema: str, patience: Patience) -> Iterator[Connection]:
    """A direct connection that holds the migration lock until the block ends.

    Every session lock is given back then: the server process outlives its closed connection for a moment.
    lock_timeout is `patience.attempt` for every statement that sets no other.
    """
    with open_connection(dsn) as connection:
        refuse_pooler(connection)
        _refuse_standby(connection)
        _settle_session(connection, patience)
        lock = migration_lock(schema)
        lock.acquire(connection, patience)
        if not lock.is_held(connection):
            raise _pooled("the migration lock is not held by the server process that answers now")
        try:
            yield connection
        finally:
            if not connection.closed:
                connection.execute("select pg_advisory_unlock_all()")


def refuse_pooler(connection: Connection) -> None:
    """Raise if a session lock could stay behind with a stranger."""
    if is_pooled(connection):
        raise _pooled("the connection goes through a pooler")


def is_pooled(connection: Connection) -> bool:
    """Whether anybody but the one server process that greeted us answers.

    A pooler sends its own process number at the start, or gives each transaction another server process.
    """
    pids = {_answering_pid(connection) for _ in range(3)}
    return pids != {connection.info.backend_pid}


def _refuse_standby(connection: Connection) -> None:
    row = connection.execute("select pg_is_in_recovery()").fetchone()
    if row is not None and row[0]:
        raise SchemaError(
            "this server is a standby and accepts no change",
            remedy="Use the primary server's host and port for this command.",
        )


def _answering_pid(connection: Connection) -> int:
    with connection.transaction():
        row = connection.execute("select pg_backend_pid()").fetchone()
    assert row is not None  # noqa: S101  a select without FROM returns one row
    return int(row[0])


def _pooled(what: str) -> SchemaError:
    return SchemaError(
        f"{what}; migrations and epoch changes hold a session lock and need a direct connection",
        remedy="Use the server's own host and port for this command, not the pooler's.",
    )


def _connect(dsn: str) -> Connection:
    try:
        return psycopg.connect(_with_defaults(dsn), autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise unreachable(error) from error


def _with_defaults(dsn: str) -> str:
    """The DSN with our defaults for what neither it nor libpq's environment sets."""
    checked_text(dsn, field="dsn")  # libpq would read it as far as a NUL
    try:
        given = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # Without its cause: libpq quotes the text that it could not parse.
        raise StoreUnavailable("the DSN is not a valid connection string or URI") from None
    missing = {
        option: value
        for option, (variable, value) in _DEFAULTS.items()
        if option not in given and (variable is None or variable not in os.environ)
    }
    return conninfo.make_conninfo(dsn, **missing)


def _settle_session(connection: Connection, patience: Patience) -> None:
    """Make the session independent of what the role or the database sets."""
    connection.isolation_level = IsolationLevel.READ_COMMITTED
    connection.read_only = False
    connection.execute(
        "set statement_timeout = 0"
    )  # first: the rest may take longer than it allows
    connection.execute(
        "select set_config(name, '0', false) from pg_settings where name = any(%s)",
        (list(_UNLIMITED),),
    )
    # Names of the schema are qualified everywhere; nothing else may stand before pg_catalog.
    connection.execute(
        "select set_config('search_path', 'pg_catalog, pg_temp', false),"
        " set_config('client_min_messages', 'warning', false), set_config('lock_timeout', %s, false)",
        (f"{milliseconds(patience.attempt)}ms",),
    )


@contextmanager
def translated_errors(needs: Needs = MIGRATOR) -> Iterator[None]:
    """Turn what the driver raises into our errors, which say no more than the SQLSTATE."""
    try:
        yield
    except OnecommitError:
        raise
    except errors.InsufficientPrivilege as error:
        raise lacking(needs, "this operation") from error
    except errors.QueryCanceled as error:
        raise SchemaError(
            "the operation was cancelled and its unfinished step rolled back",
            remedy="Run the command again; it continues where it stopped.",
        ) from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(
            "the connection was lost and the unfinished step rolled back",
            remedy="Run the command again; it continues where it stopped.",
        ) from error
    except psycopg.Error as error:
        raise SchemaError(
            f"PostgreSQL refused a statement (SQLSTATE {error.sqlstate})",
            remedy="The server's log has the details; nothing of the unfinished step was kept.",
        ) from error
