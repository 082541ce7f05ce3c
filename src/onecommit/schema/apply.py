"""Bring a schema to this package's version."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from psycopg import Connection, errors

from onecommit.errors import SchemaError
from onecommit.schema.bundle import Bundle, Migration, packaged_bundle
from onecommit.schema.lock import (
    Patience,
    SessionLock,
    busy,
    log_waiting,
    milliseconds,
    schema_lock,
    table_lock_holders,
)
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.report import SchemaReport, SchemaState
from onecommit.schema.session import owner_session
from onecommit.schema.status import assess_connected, require_store
from onecommit.schema.steps import Step, pending_steps

logger = logging.getLogger("onecommit.schema")


def apply(
    dsn: str = "",
    *,
    schema: str = DEFAULT_SCHEMA,
    bundle: Bundle | None = None,
    patience: Patience | None = None,
    store_id: UUID | None = None,
    reinstall_routines: bool = False,
) -> SchemaReport:
    """Apply the pending migrations and install the routines; do nothing if that is done already.

    Every step is a transaction of its own. Anything unexpected is refused before the first change. Blocks; from
    asyncio use `to_thread`.

    Args:
        dsn: A libpq connection string or URI of a direct connection; empty: libpq's environment.
        schema: The schema's name.
        bundle: What to install, if not what this package carries.
        patience: How long to wait for locks.
        store_id: Refuse a database that holds another store, or none.
        reinstall_routines: Overwrite routines that were changed outside the migrations.
    """
    checked_schema_name(schema)
    bundle = bundle or packaged_bundle()
    patience = patience or Patience()
    with owner_session(dsn, schema=schema, patience=patience) as connection:
        run = _Run(connection, bundle=bundle, schema=schema, patience=patience)
        before = run.assess()
        require_store(before, store_id)
        steps = run.plan(before, reinstall_routines=reinstall_routines)
        for step in steps:
            run.execute(step)
        return run.validate(before) if steps else before


class _Run:
    """One run under the migration lock."""

    def __init__(
        self, connection: Connection, *, bundle: Bundle, schema: str, patience: Patience
    ) -> None:
        self._connection = connection
        self._bundle = bundle
        self._schema = schema
        self._patience = patience
        self._schema_lock: SessionLock | None = None

    def assess(self) -> SchemaReport:
        return assess_connected(self._connection, self._bundle, schema=self._schema)

    def plan(self, report: SchemaReport, *, reinstall_routines: bool) -> list[Step]:
        """The steps to run, none if nothing is to be done; raises for what must not be touched."""
        match report.state:
            case SchemaState.COMPATIBLE:
                return []
            case SchemaState.MISSING | SchemaState.UPGRADE_REQUIRED:
                pass
            case SchemaState.INCONSISTENT if reinstall_routines and report.changed_routines:
                pass
            case _:
                report.require_compatible()
        version = report.installed_version or 0
        if report.active_epoch is not None:
            self._require_fence(report.writer_min or 1, self._bundle.migrations[version:])
        return pending_steps(self._bundle, version, schema=self._schema, repeat_routines=True)

    def _require_fence(self, writer_min: int, pending: Sequence[Migration]) -> None:
        """Refuse all of them if one would break a package that the store still accepts."""
        for migration in pending:
            if migration.writer_min is not None and migration.writer_min > writer_min:
                raise SchemaError(
                    f"migration {migration.version:04} ({migration.name}) breaks packages that do not know schema"
                    f" version {migration.writer_min}, and the store still accepts them; nothing was changed",
                    remedy="Upgrade every process to the release that is installed, run `onecommit fence`, then migrate"
                    " again.",
                )

    def execute(self, step: Step) -> None:
        """Run one step in a transaction of its own.

        A step that meets a locked table gives up after one attempt and lets the application go on before the
        next: it would otherwise hold up every statement on that table, and every mutation by the schema lock.
        """
        for _ in self._patience.attempts():
            self._hold_schema_lock()
            if self._try(step):
                logger.info("done: %s", step.title)
                return
            self._release_schema_lock()
            log_waiting("tables", table_lock_holders(self._connection, self._schema))
        raise busy(f"tables of {step.title}", table_lock_holders(self._connection, self._schema))

    def validate(self, before: SchemaReport) -> SchemaReport:
        """Read everything again, still under the locks, and report what this run did."""
        after = self.assess().require_compatible()
        applied = range((before.installed_version or 0) + 1, self._bundle.version + 1)
        return replace(after, applied_versions=tuple(applied), routines_installed=True)

    def _try(self, step: Step) -> bool:
        try:
            with self._connection.transaction():
                self._connection.execute(
                    "select set_config('lock_timeout', %s, true)",
                    (f"{milliseconds(self._patience.table_attempt)}ms",),
                )
                self._connection.execute(step.text.encode())
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            return False
        return True

    def _hold_schema_lock(self) -> None:
        """Wait for the mutations in flight and bar new ones; before the store exists there are none."""
        if self._schema_lock is None:
            lock = schema_lock(self._connection, self._schema)
            if lock is not None:
                lock.acquire(self._connection, self._patience)
                self._schema_lock = lock

    def _release_schema_lock(self) -> None:
        if self._schema_lock is not None:
            self._schema_lock.release(self._connection)
            self._schema_lock = None
