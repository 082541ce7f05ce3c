"""What a database holds under a schema name, read in one snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection, errors, sql

from onecommit.domain.queue import QueueFinalization
from onecommit.errors import SchemaInconsistent


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedMigration:
    """One row of the migration history."""

    version: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledRoutines:
    """Which package version installed the routines last, and the hash of their files."""

    package_version: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Everything that decides the state of a schema; the default is an absent or empty one."""

    holds_objects: bool = False
    tables: frozenset[str] = frozenset()
    history: tuple[AppliedMigration, ...] = ()
    routines: InstalledRoutines | None = None
    bodies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per routine name the SHA-256 of each installed body; more than one means an overload."""
    writer_min: int | None = None
    """A package that knows only older schema versions may not write here."""
    store_id: UUID | None = None
    active_epoch: int | None = None
    finalization: tuple[QueueFinalization, ...] = ()

    @property
    def version(self) -> int | None:
        """The highest applied version, or None without a history."""
        return max((applied.version for applied in self.history), default=None)


def read_installed(connection: Connection, schema: str) -> Installed:
    """Read the catalog and the store's own tables; nothing is changed, nobody has to wait."""
    try:
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            connection.execute("set local search_path = pg_catalog, pg_temp")
            return _Reader(connection, schema).read()
    except (errors.UndefinedColumn, errors.WrongObjectType) as error:
        raise SchemaInconsistent(
            f'schema "{schema}" holds tables of our names that are not ours'
        ) from error


class _Reader:
    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._relations = self._read_relations()

    def read(self) -> Installed:
        history = self._read_history()
        bodies = self._read_bodies()
        return Installed(
            holds_objects=self._holds_objects(),
            tables=frozenset(name for name, kind in self._relations.items() if kind != "S"),
            history=history,
            routines=self._read_routine_install(),
            bodies=bodies,
            writer_min=self._read_writer_min() if "store_status" in bodies else None,
            store_id=self._read_store_id(),
            active_epoch=self._read_active_epoch(),
            finalization=self._read_finalization() if "finalization_status" in bodies else (),
        )

    def _read_relations(self) -> dict[str, str]:
        rows = self._connection.execute(
            "select c.relname, c.relkind::text from pg_class c"
            " join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = %s and c.relkind in ('r', 'p', 'S')",
            (self._schema,),
        )
        return {name: kind for name, kind in rows}  # noqa: C416  typed rows

    def _holds_objects(self) -> bool:
        rows = self._connection.execute(
            # What lives in a schema depends on it; default privileges do too, but are no objects.
            "select from pg_depend d join pg_namespace n on n.oid = d.refobjid"
            " where d.refclassid = 'pg_namespace'::regclass and n.nspname = %s"
            " and d.classid <> 'pg_default_acl'::regclass limit 1",
            (self._schema,),
        )
        return rows.fetchone() is not None

    def _read_bodies(self) -> dict[str, tuple[str, ...]]:
        rows = self._connection.execute(
            "select p.proname, array_agg(encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex'))"
            " from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
            " where n.nspname = %s group by p.proname",
            (self._schema,),
        )
        return {name: tuple(hashes) for name, hashes in rows}

    def _read_history(self) -> tuple[AppliedMigration, ...]:
        rows = self._select("select version, sha256 from {} order by version", "schema_migration")
        return tuple(AppliedMigration(version=version, sha256=sha256) for version, sha256 in rows)

    def _read_routine_install(self) -> InstalledRoutines | None:
        rows = self._select("select package_version, routines_sha256 from {}", "routine_install")
        return InstalledRoutines(package_version=rows[0][0], sha256=rows[0][1]) if rows else None

    def _read_store_id(self) -> UUID | None:
        rows = self._select("select store_id from {}", "store_metadata")
        return rows[0][0] if rows else None

    def _read_active_epoch(self) -> int | None:
        rows = self._select("select nullif(last_value, 0) from {}", "epoch_fence")
        return rows[0][0] if rows else None

    def _read_finalization(self) -> tuple[QueueFinalization, ...]:
        rows = self._query(
            "select queue, enabled_at is not null, waiting_for, disabled_at is not null from {}()",
            "finalization_status",
        )
        return tuple(
            QueueFinalization(
                queue=queue, enabled=enabled, waiting_for=tuple(names), disabled=disabled
            )
            for queue, enabled, names, disabled in rows
        )

    def _read_writer_min(self) -> int | None:
        rows = self._query("select writer_min from {}()", "store_status")
        return rows[0][0] if rows else None

    def _select(self, query: LiteralString, relation: str) -> list[tuple[Any, ...]]:
        return self._query(query, relation) if relation in self._relations else []

    def _query(self, query: LiteralString, name: str) -> list[tuple[Any, ...]]:
        target = sql.Identifier(self._schema, name)
        return self._connection.execute(sql.SQL(query).format(target)).fetchall()
