"""Everything that the doctor judges, read in one snapshot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, LiteralString, TypeVar

from psycopg import Connection, errors, sql
from psycopg.rows import dict_row

from onecommit.doctor import queries
from onecommit.doctor.rows import (
    DefinitionRow,
    GrantRow,
    MembershipRow,
    OtherRow,
    PolicyRow,
    RelationRow,
    RoleRow,
    RoutineRow,
    StoreRow,
    TriggerRow,
)
from onecommit.errors import SchemaError

T = TypeVar("T")

PATIENCE = "5s"
"""How long the doctor waits for a lock, and for an answer of the store at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The schema, the roles that can reach it, and what the login was not allowed to see."""

    schema: str
    owner: str
    routines: tuple[RoutineRow, ...]
    relations: tuple[RelationRow, ...]
    others: tuple[OtherRow, ...]
    grants: tuple[GrantRow, ...]
    policies: tuple[PolicyRow, ...]
    triggers: tuple[TriggerRow, ...]
    definitions: tuple[DefinitionRow, ...]
    roles: Mapping[str, RoleRow]
    memberships: tuple[MembershipRow, ...]
    intruders: tuple[str, ...]
    """What an extension did not put into pg_catalog, and who else may put something there."""
    store: StoreRow | None
    """None if the login may not ask."""
    unseen: tuple[str, ...]

    @property
    def execution_owners(self) -> frozenset[str]:
        """As whom the routines run that do not run as their caller."""
        return frozenset(routine.owner for routine in self.routines if routine.is_definer)

    @property
    def owners(self) -> frozenset[str]:
        """Everybody whom the store trusts with everything in it."""
        return self.execution_owners | {self.owner}


def read_catalog(connection: Connection, schema: str) -> Catalog:
    """Read the catalogs and the store's own status; read-only, waiting for nobody longer than a moment.

    Raises SchemaError if the schema does not exist, or a table of it stays locked.
    """
    try:
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            return read_inside(connection, schema)
    except errors.LockNotAvailable as error:
        rows = connection.execute(queries.EXCLUSIVE, {"schema": schema}).fetchall()
        pids = ", ".join(str(pid) for (pid,) in rows) or "somebody who has gone"
        raise SchemaError(
            f"a table of the store is locked against everybody by pid {pids}",
            remedy="Wait until that session is done, or end it; then run the command again.",
        ) from error


def read_inside(connection: Connection, schema: str) -> Catalog:
    """The same inside the transaction that is open; some of its settings are other ones afterwards."""
    # So that what PostgreSQL prints is qualified unless it is PostgreSQL's own, and the same everywhere.
    connection.execute("set local search_path = pg_catalog, pg_temp")
    connection.execute("set local quote_all_identifiers = off")
    connection.execute("set local intervalstyle = postgres")
    # To print an expression PostgreSQL opens its table.
    connection.execute("select set_config('lock_timeout', %s, true)", (PATIENCE,))
    return _Reader(connection, schema).read()


class _Reader:
    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def read(self) -> Catalog:
        owners = self._tuples(queries.SCHEMA)
        if not owners:
            raise SchemaError(
                f'schema "{self._schema}" does not exist in this database',
                remedy="Check the database's name and --schema; `onecommit migrate` installs it.",
            )
        store, unseen = self._read_store()
        return Catalog(
            schema=self._schema,
            owner=owners[0][0],
            routines=self._rows(RoutineRow, queries.ROUTINES),
            relations=self._rows(RelationRow, queries.RELATIONS),
            others=self._rows(OtherRow, queries.OTHERS),
            grants=self._rows(GrantRow, queries.GRANTS),
            policies=self._rows(PolicyRow, queries.POLICIES),
            triggers=self._rows(TriggerRow, queries.TRIGGERS),
            definitions=self._rows(DefinitionRow, queries.DEFINITIONS),
            roles={role.name: role for role in self._rows(RoleRow, queries.ROLES)},
            memberships=self._rows(MembershipRow, queries.MEMBERSHIPS),
            intruders=tuple(text for (text,) in self._tuples(queries.INTRUDERS)),
            store=store,
            unseen=unseen,
        )

    def _read_store(self) -> tuple[StoreRow | None, tuple[str, ...]]:
        allowed = self._tuples(queries.MAY_ASK_STORE)
        if not allowed:
            return StoreRow(store_id=None, version=None, active_epoch=None), ()
        if not allowed[0][0]:
            return None, (
                "store_status: the login has no EXECUTE, so StoreId and epoch are unseen",
            )
        name = sql.Identifier(self._schema, "store_status")
        query = sql.SQL("select store_id::text, schema_version, active_epoch from {}()").format(
            name
        )
        try:
            with self._connection.transaction():
                rows = self._connection.execute(query).fetchall()
        except errors.Error as error:
            return None, (f"store_status: it failed (SQLSTATE {error.sqlstate})",)
        store_id, version, epoch = rows[0] if rows else (None, None, None)
        return StoreRow(store_id=store_id, version=version, active_epoch=epoch), ()

    def _rows(self, kind: type[T], query: LiteralString) -> tuple[T, ...]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(query, {"schema": self._schema}).fetchall()
        return tuple(kind(**dict(_values(row))) for row in rows)

    def _tuples(self, query: LiteralString) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, {"schema": self._schema}).fetchall()


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        yield name, frozenset(value) if isinstance(value, list) else value
