"""The state of a schema in a database."""

from uuid import UUID

from psycopg import Connection

from onecommit.errors import StoreMismatch
from onecommit.schema.bundle import Bundle, packaged_bundle
from onecommit.schema.installed import read_installed
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.report import SchemaReport, assess
from onecommit.schema.session import open_connection


def status(
    dsn: str = "", *, schema: str = DEFAULT_SCHEMA, bundle: Bundle | None = None
) -> SchemaReport:
    """Read the state of a schema; read-only, without locks, through a pooler too.

    The login needs the capability `reader`, or to own the schema. Blocks; from asyncio use `to_thread`.
    """
    checked_schema_name(schema)
    with open_connection(dsn, needs=(("reader",),)) as connection:
        return assess_connected(connection, bundle or packaged_bundle(), schema=schema)


def assess_connected(connection: Connection, bundle: Bundle, *, schema: str) -> SchemaReport:
    """The state of a schema, over an open connection."""
    installed = read_installed(connection, schema)
    return assess(bundle, installed, schema=schema)


def require_store(report: SchemaReport, store_id: UUID | None) -> None:
    """Raise StoreMismatch if the deployment names a store and this database holds another or none."""
    if store_id is None or store_id == report.store_id:
        return
    if report.store_id is None:
        raise StoreMismatch(
            f'the deployment names store {store_id}, but schema "{report.schema}" holds none',
            remedy="Check the database's name; unset ONECOMMIT_STORE_ID to create a new store.",
        )
    raise StoreMismatch(
        f"the deployment names store {store_id}, but this database holds {report.store_id}"
    )
