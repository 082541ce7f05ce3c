"""How the store's connections are set up."""

import select
from collections.abc import Callable
from datetime import timedelta
from struct import iter_unpack, unpack_from
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.pq import Format

from onecommit.domain.settings import StoreSettings
from onecommit.errors import UsageError

# Whatever the role or the database sets: one isolation level, writable, bounded, no JIT for short calls.
SESSION = (
    "select set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('default_transaction_deferrable', 'off', false),"
    " set_config('statement_timeout', %s, false),"
    " set_config('idle_in_transaction_session_timeout', %s, false),"
    " set_config('jit', 'off', false)"
)


def connection_string(settings: StoreSettings) -> str:
    """The DSN with our defaults for what it leaves open: a dead peer is noticed, an open is bounded."""
    if not settings.dsn:
        raise UsageError(
            "no DSN is set", remedy="Set ONECOMMIT_DSN, or pass dsn=..., or use App.embedded()."
        )
    try:
        given = conninfo.conninfo_to_dict(settings.dsn)
    except psycopg.ProgrammingError:
        # Without its cause: libpq quotes the text that it could not parse.
        raise UsageError(
            "the DSN is not a valid connection string or URI",
            remedy="Write it as postgresql://user@host:port/database or host=... dbname=...",
        ) from None
    defaults: dict[str, Any] = {
        "application_name": settings.application_name,
        "connect_timeout": max(2, round(settings.connect_timeout.total_seconds())),
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": milliseconds(settings.operation_timeout),
    }
    return conninfo.make_conninfo(settings.dsn, **(defaults | given))


def milliseconds(duration: timedelta) -> int:
    """A duration as PostgreSQL's timeouts take it, at least one."""
    return max(1, round(duration / timedelta(milliseconds=1)))


def readiness_of(socket: int) -> Callable[[], bool]:
    """A cheap question: is there something to read from this socket?"""
    if not hasattr(select, "poll"):  # Windows
        return lambda: bool(select.select([socket], [], [], 0)[0])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return lambda: bool(poll.poll(0))


class MicrosecondsLoader(Loader):
    """Reads timestamptz[] as microseconds since 2000: a tenth of the time that datetimes take."""

    format = Format.BINARY

    def load(self, data: Buffer) -> list[int]:
        """Header: dimensions, has-null flag, element type, length, lower bound; then length and value."""
        dimensions, has_null = unpack_from("!ii", data)
        if not dimensions:
            return []
        if has_null:
            raise psycopg.DataError("an array of timestamps holds a null")
        return [value for _, value in iter_unpack("!iq", memoryview(data)[20:])]


def register_loaders(adapters: AdaptersMap) -> None:
    """Teach one connection of ours our way of reading."""
    adapters.register_loader(adapters.types["timestamptz"].array_oid, MicrosecondsLoader)
