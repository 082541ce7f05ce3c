"""Everything that the doctor judges of a store at work, asked for one by one."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString, TypeVar

from psycopg import Connection, errors, sql
from psycopg.rows import dict_row

from onecommit.doctor import vital_queries as queries
from onecommit.doctor.catalog import PATIENCE
from onecommit.doctor.vital_rows import (
    ConnectionRow,
    DeadLetterRow,
    HolderRow,
    LaneRow,
    LockRow,
    SessionRow,
    WorkRow,
)
from onecommit.domain.connections import ConnectionBudget
from onecommit.domain.ring import ChapterPin, StoreHealth
from onecommit.domain.worker import WorkerView
from onecommit.errors import OnecommitError
from onecommit.schema.session import is_pooled
from onecommit.worker.notifier import TEST_BUDGET, new_test

T = TypeVar("T")
Open = Callable[[], AbstractContextManager[Connection]]

_BETWEEN_LOOKS = 1.0
"""A lock or a job that stood here at two looks so far apart does not merely pass by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What goes on; what the login may not see is None or missing, and named in unseen."""

    connection: ConnectionRow
    sessions: tuple[SessionRow, ...]
    holders: tuple[HolderRow, ...]
    locks: tuple[LockRow, ...]
    health: StoreHealth | None
    pins: tuple[ChapterPin, ...]
    lanes: tuple[LaneRow, ...]
    """A number that waits is one that waited for a second."""
    workers: tuple[WorkerView, ...]
    dead_letters: tuple[DeadLetterRow, ...]
    work: tuple[WorkRow, ...]
    budget: ConnectionBudget | None
    epoch: int | None
    unseen: tuple[tuple[str, str], ...]
    """What could not be looked at, and why."""

    def session(self, pid: int) -> str:
        """A server process in words, as far as it can be seen."""
        found = next((session for session in self.sessions if session.pid == pid), None)
        if pid == 0:
            return "a prepared transaction"
        if found is None:
            return f"pid {pid}"
        if found.is_hidden:
            return f"pid {pid} ({found.role}, the rest is hidden)"
        return f"pid {pid} ({found.role}, {found.state}, its transaction {spoken(found.age)} old)"


def spoken(duration: timedelta | None) -> str:
    """A duration in its largest unit."""
    if duration is None:
        return "0 s"
    seconds = max(0, round(duration.total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def read_vitals(connection: Connection, schema: str, *, open_another: Open) -> Vitals:
    """Look at what goes on, over an autocommit connection; another one listens for a notice.

    Changes nothing; sends one notice, which workers pass over; waits a second if something seems to wait.
    """
    return _Reader(connection, schema, open_another).read()


class _Reader:
    def __init__(self, connection: Connection, schema: str, open_another: Open) -> None:
        self._connection = connection
        self._schema = schema
        self._open_another = open_another
        self._unseen: list[tuple[str, str]] = []

    def read(self) -> Vitals:
        began = time.monotonic()
        locks, lanes = self._locks(), self._ask(LaneRow, "lane_health")
        vitals = Vitals(
            connection=self._read_connection(),
            sessions=(),
            holders=self._rows(HolderRow, queries.HOLDERS),
            locks=locks,
            health=_only(self._ask(StoreHealth, "store_health")),
            pins=self._ask(ChapterPin, "chapter_pins"),
            lanes=lanes,
            workers=self._ask(WorkerView, "list_workers"),
            dead_letters=self._ask(DeadLetterRow, "dead_letter_counts"),
            work=self._ask(WorkRow, "work_counts"),
            budget=_only(self._ask(ConnectionBudget, "connection_budget")),
            epoch=self._epoch(),
            unseen=(),
        )
        if locks or any(lane.waiting_number for lane in lanes):
            time.sleep(max(0.0, began + _BETWEEN_LOOKS - time.monotonic()))
            vitals = replace(vitals, locks=self._still(locks), lanes=self._still_waiting(lanes))
        # Sessions last, so that whoever holds a lock is among them.
        sessions = self._rows(SessionRow, queries.SESSIONS)
        return replace(vitals, sessions=sessions, unseen=tuple(dict.fromkeys(self._unseen)))

    def _still(self, locks: Sequence[LockRow]) -> tuple[LockRow, ...]:
        return tuple(lock for lock in self._locks() if lock in locks)

    def _still_waiting(self, lanes: Sequence[LaneRow]) -> tuple[LaneRow, ...]:
        """As they are now; what waits is named only if it is what waited before."""
        before = {lane.lane: lane for lane in lanes}
        return tuple(
            lane
            if lane.lane in before and _is_where_it_was(lane, before[lane.lane])
            else replace(lane, waiting_number=None, waiting_since=None)
            for lane in self._ask(LaneRow, "lane_health")
        )

    def _read_connection(self) -> ConnectionRow:
        before = datetime.now(UTC)
        [(standby, usage, most, there)] = self._connection.execute(queries.CONNECTION).fetchall()
        took = datetime.now(UTC) - before
        return ConnectionRow(
            is_standby=standby,
            is_pooled=is_pooled(self._connection),
            is_heard=None if standby else self._is_heard(),
            queue_usage=usage,
            max_connections=most,
            skew=there - (before + took / 2),
            uncertainty=took / 2,
        )

    def _is_heard(self) -> bool | None:
        """Whether a notice arrives that another connection sends, as a worker's own test does."""
        test = new_test()
        try:
            with self._open_another() as listener:
                listener.execute(sql.SQL("listen {}").format(sql.Identifier(self._schema)))
                self._connection.execute("select pg_notify(%s, %s)", (self._schema, test))
                heard = any(n.payload == test for n in listener.notifies(timeout=TEST_BUDGET))
                listener.execute("unlisten *")
        except OnecommitError as error:
            self._unseen.append(("notices", error.message))
            return None
        return heard

    def _locks(self) -> tuple[LockRow, ...]:
        return self._rows(LockRow, queries.LOCKS)

    def _epoch(self) -> int | None:
        rows = self._call("store_status")
        return rows[0]["active_epoch"] if rows else None

    def _ask(self, kind: type[T], routine: LiteralString) -> tuple[T, ...]:
        return tuple(kind(**row) for row in self._call(routine))

    def _call(self, routine: LiteralString) -> list[dict[str, Any]]:
        """The rows of a routine, none if the login may not call it."""
        parameters = {"schema": self._schema, "routine": routine}
        allowed = self._connection.execute(queries.MAY_ASK, parameters).fetchone()
        if allowed is None:
            self._unseen.append((routine, "it is not installed"))
        elif not allowed[0]:
            self._unseen.append((routine, "the login has no EXECUTE"))
        else:
            return self._fetch(routine)
        return []

    def _fetch(self, routine: LiteralString) -> list[dict[str, Any]]:
        query = sql.SQL("select * from {}()").format(sql.Identifier(self._schema, routine))
        try:
            with self._connection.transaction():
                self._connection.execute(
                    "select set_config('statement_timeout', %s, true)", (PATIENCE,)
                )
                with self._connection.cursor(row_factory=dict_row) as cursor:
                    return cursor.execute(query).fetchall()
        except errors.QueryCanceled:
            self._unseen.append((routine, f"it took longer than {PATIENCE}"))
        except errors.Error as error:
            if self._connection.broken:
                raise
            self._unseen.append((routine, f"it failed (SQLSTATE {error.sqlstate})"))
        return []

    def _rows(self, kind: type[T], query: LiteralString) -> tuple[T, ...]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(query, {"schema": self._schema}).fetchall()
        return tuple(kind(**row) for row in rows)


def _only(rows: tuple[T, ...]) -> T | None:
    return rows[0] if rows else None


def _is_where_it_was(lane: LaneRow, before: LaneRow) -> bool:
    return (lane.waiting_number, lane.claimed_at) == (before.waiting_number, before.claimed_at)
