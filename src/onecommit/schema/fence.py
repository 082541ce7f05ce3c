"""The fence against older packages: raised when no older process is left, before a migration that breaks them."""

from dataclasses import dataclass
from uuid import UUID

import psycopg
from psycopg import Connection, sql

from onecommit.domain.arguments import INTEGER, checked_number, checked_text
from onecommit.drivers.transaction import refusal_of
from onecommit.schema.bundle import packaged_bundle
from onecommit.schema.lock import Patience, end_mutations
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.report import SchemaReport, SchemaState
from onecommit.schema.session import owner_session
from onecommit.schema.status import assess_connected, require_store

_RESCUED_AT_ONCE = 500
_NOBODY_IS_SILENT_US = 10**12
"""A window in which no other worker counts as dead: all wait while the fence is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceReport:
    """What the store accepts from now on, and whom that has ended."""

    writer_min: int
    ended: tuple[str, ...]
    """The names of the older workers that were alive; empty without `force`."""
    rescued: int
    """How many of their jobs were taken back."""


def fence_writers(
    dsn: str = "",
    *,
    actor: str,
    reason: str,
    writer_min: int | None = None,
    force: bool = False,
    schema: str = DEFAULT_SCHEMA,
    store_id: UUID | None = None,
    patience: Patience | None = None,
) -> FenceReport:
    """Refuse every process whose package does not know this schema version.

    An older process cannot open the store or register as a worker any more. Live older workers make this raise
    StateRefused, which names them. Nothing else happens to a process that only enqueues and has the store open: the
    functions that it calls are kept.

    Args:
        dsn: As for `apply`.
        actor: Who does it; kept.
        reason: Why; kept.
        writer_min: The schema version that a package must know; the installed one by default. A smaller one than now
            takes the fence back.
        force: End older workers that are alive, and take their jobs back in the same breath.
        schema: The schema's name.
        store_id: Refuse a database that holds another store.
        patience: How long to wait for locks.
    """
    checked_schema_name(schema)
    checked_text(actor, field="actor")
    checked_text(reason, field="reason")
    if writer_min is not None:
        checked_number(writer_min, field="writer_min", bits=INTEGER)
    patience = patience or Patience()
    with owner_session(dsn, schema=schema, patience=patience) as connection:
        report = assess_connected(connection, packaged_bundle(), schema=schema)
        require_store(report, store_id)
        if (
            report.state is not SchemaState.UPGRADE_REQUIRED
        ):  # a pending migration may need the fence
            report.require_compatible()
        end_mutations(connection, schema, patience)
        installed = report.installed_version or 0
        wanted = installed if writer_min is None else writer_min
        try:
            ended = _raise(connection, report, wanted, force=force, actor=actor, reason=reason)
            rescued = _rescue(connection, report) if ended else 0
        except psycopg.Error as error:
            raise refusal_of(error, doing="fence_writers") or error from error
    return FenceReport(writer_min=wanted, ended=tuple(ended), rescued=rescued)


def _raise(
    connection: Connection,
    report: SchemaReport,
    writer_min: int,
    *,
    force: bool,
    actor: str,
    reason: str,
) -> list[str]:
    call = sql.SQL("select {}(%s, %s, %s, %s, %s)").format(
        sql.Identifier(report.schema, "fence_writers")
    )
    row = connection.execute(call, (report.store_id, writer_min, force, actor, reason)).fetchone()
    return [] if row is None else list(row[0])


def _rescue(connection: Connection, report: SchemaReport) -> int:
    """Close what the ended workers have open, while nobody can close it differently."""
    call = sql.SQL("select rescued, more from {}(%s, %s, %s)").format(
        sql.Identifier(report.schema, "rescue_jobs")
    )
    rescued, more = 0, True
    while more:
        row = connection.execute(
            call, (_NOBODY_IS_SILENT_US, _RESCUED_AT_ONCE, report.active_epoch)
        ).fetchone()
        assert row is not None  # noqa: S101  the function returns one row
        rescued, more = rescued + row[0], row[1]
    return rescued
