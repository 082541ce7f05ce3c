"""Session advisory locks: queue briefly, step back, try again, and name the holders when giving up."""

import hashlib
import logging
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import LiteralString

from psycopg import Connection, errors

from onecommit.domain.times import microseconds
from onecommit.errors import InvalidArgument, SchemaBusy

logger = logging.getLogger("onecommit.schema")

_ACQUIRE: dict[int, LiteralString] = {
    1: "select pg_advisory_lock(%s::bigint)",
    2: "select pg_advisory_lock(%s::integer, %s::integer)",
}
_RELEASE: dict[int, LiteralString] = {
    1: "select pg_advisory_unlock(%s::bigint)",
    2: "select pg_advisory_unlock(%s::integer, %s::integer)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one attempt may queue for a lock, and for how long to go on trying.

    While an attempt queues, everything that wants the same lock queues behind it; between attempts it goes on.
    """

    attempt: timedelta = timedelta(seconds=1)
    """For an advisory lock."""
    table_attempt: timedelta = timedelta(seconds=2)
    """For a table: longer than deadlock_timeout, after which the server ends an autovacuum in the way."""
    total: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        for name in ("attempt", "table_attempt", "total"):
            if not microseconds(getattr(self, name), field=name):
                raise InvalidArgument(
                    f"patience: `{name}` must be a positive timedelta", field=name
                )

    def attempts(self) -> Iterator[None]:
        """One step at once, then one after each pause, longer and jittered, until the total is spent."""
        deadline = time.monotonic() + self.total.total_seconds()
        longest = 0.1
        yield
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, random.uniform(longest / 2, longest)))  # noqa: S311  jitter
            longest = min(2.0, longest * 2)
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A session that holds a lock; the pid is None for a prepared transaction."""

    pid: int | None
    application_name: str

    def __str__(self) -> str:
        if self.pid is None:
            return "a prepared transaction"
        return f"pid {self.pid}" + (f" ({self.application_name})" * bool(self.application_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLock:
    """One advisory lock, taken by a session in exclusive mode."""

    name: str
    key: tuple[int] | tuple[int, int]

    def acquire(self, connection: Connection, patience: Patience) -> None:
        """Hold the lock, or raise SchemaBusy; the session's lock_timeout bounds each attempt."""
        for _ in patience.attempts():
            if self._try(connection):
                return
            log_waiting(self.name, self.holders(connection))
        raise busy(self.name, self.holders(connection))

    def release(self, connection: Connection) -> None:
        """Give the lock back; the end of the session does so too."""
        connection.execute(_RELEASE[len(self.key)], self.key)

    def is_held(self, connection: Connection) -> bool:
        """Whether pg_locks shows the lock as held by the backend that answers."""
        return self.holders(connection, own=True) != []

    def holders(self, connection: Connection, *, own: bool = False) -> list[Holder]:
        """The other sessions that hold the lock, in either mode; or this one."""
        rows = connection.execute(
            "select distinct l.pid, coalesce(a.application_name, '') from pg_locks l"
            " left join pg_stat_activity a using (pid)"
            " where l.locktype = 'advisory' and l.granted"
            " and l.database = (select oid from pg_database where datname = current_database())"
            " and (l.classid::bigint, l.objid::bigint, l.objsubid) = (%s, %s, %s)"
            " and (l.pid is not distinct from pg_backend_pid()) = %s order by 1",
            (*self._as_shown(), own),
        ).fetchall()
        return [Holder(pid=pid, application_name=name) for pid, name in rows]

    def _try(self, connection: Connection) -> bool:
        try:
            connection.execute(_ACQUIRE[len(self.key)], self.key)
        except errors.LockNotAvailable:
            return False
        return True

    def _as_shown(self) -> tuple[int, int, int]:
        """The key as the three columns of pg_locks, of which two are unsigned."""
        if len(self.key) == 1:
            unsigned = self.key[0] % 2**64
            return unsigned >> 32, unsigned % 2**32, 1
        return self.key[0] % 2**32, self.key[1] % 2**32, 2


def milliseconds(wait: timedelta) -> int:
    """The value for lock_timeout, in which 0 would mean for ever."""
    return max(1, round(wait / timedelta(milliseconds=1)))


def migration_lock(schema: str) -> SessionLock:
    """The lock that every migration and epoch change takes first, before the store exists too.

    Advisory locks belong to one database, so the key need not hold the database's name.
    """
    digest = hashlib.sha256(f"onecommit migration of {schema}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    return SessionLock(name="migration lock", key=(key,))


def schema_lock(connection: Connection, schema: str) -> SessionLock | None:
    """The lock that every runtime mutation holds in shared mode; None before the store exists."""
    row = connection.execute(
        # The class is the oid's 32 bits read as a signed number, as lock_class() reads them.
        "select c.oid::bigint::bit(32)::integer from pg_class c"
        " join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = %s and c.relname = 'store_metadata'",
        (schema,),
    ).fetchone()
    return SessionLock(name="schema lock", key=(row[0], 0)) if row else None


def end_mutations(connection: Connection, schema: str, patience: Patience) -> None:
    """Wait for the mutations in flight; new ones wait until this session ends."""
    lock = schema_lock(connection, schema)
    if lock is not None:
        lock.acquire(connection, patience)


def table_lock_holders(connection: Connection, schema: str) -> list[Holder]:
    """The other sessions that hold a lock on anything in the schema."""
    rows = connection.execute(
        "select distinct l.pid, coalesce(a.application_name, '') from pg_locks l"
        " join pg_class c on c.oid = l.relation"
        " join pg_namespace n on n.oid = c.relnamespace"
        " left join pg_stat_activity a using (pid)"
        " where l.database = (select oid from pg_database where datname = current_database())"
        " and l.granted and n.nspname = %s and l.pid is distinct from pg_backend_pid() order by 1",
        (schema,),
    ).fetchall()
    return [Holder(pid=pid, application_name=name) for pid, name in rows]


def busy(what: str, holders: Sequence[Holder]) -> SchemaBusy:
    """The error of giving up."""
    pids = [holder.pid for holder in holders if holder.pid is not None]
    return SchemaBusy(
        f"gave up waiting for the {what} held by {_named(holders)}", blocking_pids=pids
    )


def log_waiting(what: str, holders: Sequence[Holder]) -> None:
    """Say who is waited for, so that an operator need not guess during the wait."""
    logger.info("waiting for the %s held by %s", what, _named(holders))


def _named(holders: Sequence[Holder]) -> str:
    return ", ".join(map(str, holders)) or "a session that has just let go"
