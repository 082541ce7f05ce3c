"""The runtime epoch: activated once, then rotated to fence every process of the old one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

import psycopg
from psycopg import Connection, errors, sql

from onecommit.domain.arguments import BIGINT, checked_count, checked_text
from onecommit.errors import EpochFenced, InvalidArgument, StoreMismatch
from onecommit.schema.bundle import packaged_bundle
from onecommit.schema.lock import Patience, end_mutations
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.report import SchemaReport
from onecommit.schema.session import owner_session
from onecommit.schema.status import assess_connected, require_store


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReport:
    """The identity that a deployment must be given, and the epoch that was active before."""

    store_id: UUID
    epoch: int
    previous: int | None


def initialize_epoch(
    dsn: str = "",
    *,
    actor: str,
    reason: str,
    schema: str = DEFAULT_SCHEMA,
    store_id: UUID | None = None,
    candidate: int | None = None,
    patience: Patience | None = None,
) -> EpochReport:
    """Activate the first epoch of a store, once; a store that has one raises EpochFenced.

    The candidate defaults to the database clock in unix milliseconds, so that two copies of a store diverge.
    """
    checked_who(actor, reason)
    _check_candidate(candidate)
    with _epoch_session(dsn, schema=schema, store_id=store_id, patience=patience) as session:
        return session.initialize(actor=actor, reason=reason, candidate=candidate)


def ensure_epoch(
    dsn: str = "",
    *,
    actor: str,
    reason: str,
    schema: str = DEFAULT_SCHEMA,
    store_id: UUID | None = None,
    patience: Patience | None = None,
) -> EpochReport:
    """The active epoch, activated first if there is none."""
    checked_who(actor, reason)
    with _epoch_session(dsn, schema=schema, store_id=store_id, patience=patience) as session:
        return session.current() or session.initialize(actor=actor, reason=reason, candidate=None)


def rotate_epoch(
    dsn: str = "",
    *,
    expected: int,
    actor: str,
    reason: str,
    schema: str = DEFAULT_SCHEMA,
    store_id: UUID | None = None,
    candidate: int | None = None,
    patience: Patience | None = None,
) -> EpochReport:
    """Replace the expected active epoch by a greater one; another active epoch raises EpochFenced.

    Every process of the old epoch is refused from then on.
    """
    checked_who(actor, reason)
    _check_candidate(candidate)
    checked_count(expected, field="expected", bits=BIGINT)
    with _epoch_session(dsn, schema=schema, store_id=store_id, patience=patience) as session:
        return session.rotate(expected=expected, actor=actor, reason=reason, candidate=candidate)


@contextmanager
def _epoch_session(
    dsn: str, *, schema: str, store_id: UUID | None, patience: Patience | None
) -> Iterator["_EpochSession"]:
    """A compatible store under the migration lock."""
    checked_schema_name(schema)
    patience = patience or Patience()
    with owner_session(dsn, schema=schema, patience=patience) as connection:
        report = assess_connected(connection, packaged_bundle(), schema=schema)
        require_store(report, store_id)
        report.require_compatible()
        yield _EpochSession(connection, report, patience)


class _EpochSession:
    def __init__(self, connection: Connection, report: SchemaReport, patience: Patience) -> None:
        self._connection = connection
        self._report = report
        self._patience = patience

    def current(self) -> EpochReport | None:
        epoch = self._report.active_epoch
        return None if epoch is None else self._announce(epoch, previous=None)

    def initialize(self, *, actor: str, reason: str, candidate: int | None) -> EpochReport:
        epoch = self._activate(
            "select {}(p_store_id => %(store_id)s, p_candidate => %(candidate)s,"
            " p_actor => %(actor)s, p_reason => %(reason)s)",
            "initialize_epoch",
            actor=actor,
            reason=reason,
            candidate=candidate,
        )
        return self._announce(epoch, previous=None)

    def rotate(
        self, *, expected: int, actor: str, reason: str, candidate: int | None
    ) -> EpochReport:
        epoch = self._activate(
            "select {}(p_store_id => %(store_id)s, p_expected => %(expected)s,"
            " p_candidate => %(candidate)s, p_actor => %(actor)s, p_reason => %(reason)s)",
            "rotate_epoch",
            actor=actor,
            reason=reason,
            candidate=candidate,
            expected=expected,
        )
        return self._announce(epoch, previous=expected)

    def _activate(
        self,
        query: LiteralString,
        function: LiteralString,
        *,
        actor: str,
        reason: str,
        candidate: int | None,
        expected: int | None = None,
    ) -> int:
        end_mutations(self._connection, self._report.schema, self._patience)
        parameters = {
            "store_id": self._report.store_id,
            "candidate": self._next_candidate() if candidate is None else candidate,
            "actor": actor,
            "reason": reason,
            "expected": expected,
        }
        call = sql.SQL(query).format(sql.Identifier(self._report.schema, function))
        with _refusals(), self._connection.transaction():
            row = self._connection.execute(call, parameters).fetchone()
        assert row is not None  # noqa: S101  a scalar function returns one row
        return int(row[0])

    def _next_candidate(self) -> int:
        """Unix milliseconds on the database clock, but above every earlier epoch."""
        history = sql.Identifier(self._report.schema, "runtime_epoch_history")
        query = sql.SQL(
            "select greatest((extract(epoch from clock_timestamp()) * 1000)::bigint, max(epoch) + 1)"
            " from {}"
        )
        row = self._connection.execute(query.format(history)).fetchone()
        assert row is not None  # noqa: S101  an aggregate returns one row
        return int(row[0])

    def _announce(self, epoch: int, *, previous: int | None) -> EpochReport:
        assert self._report.store_id is not None  # noqa: S101  the report is compatible
        return EpochReport(store_id=self._report.store_id, epoch=epoch, previous=previous)


def checked_who(actor: str, reason: str) -> None:
    """Raise unless somebody says who he is and why, before anything is done."""
    for field, text in (("actor", actor), ("reason", reason)):
        if not checked_text(text, field=field).strip():
            raise InvalidArgument(
                f"{field}: must not be empty; it is kept in the epoch history", field=field
            )


def _check_candidate(candidate: int | None) -> None:
    if candidate is not None:
        checked_count(candidate, field="candidate", bits=BIGINT)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn the SQLSTATEs of the epoch functions into our errors."""
    try:
        yield
    except errors.InvalidParameterValue as error:
        raise InvalidArgument(
            "candidate: must be greater than every earlier epoch", field="candidate"
        ) from error
    except psycopg.Error as error:
        match error.sqlstate:
            case "OC004":
                # The functions' own text and hint: they quote no value.
                message, hint = error.diag.message_primary, error.diag.message_hint
                raise EpochFenced(f"{message}; nothing was changed", remedy=hint) from error
            case "OC009":
                raise StoreMismatch("this database holds another store") from error
            case _:
                raise
