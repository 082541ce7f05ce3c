"""What other sessions are doing, seen from the server: tests wait for what they observe, never for a time."""

import asyncio
import time
from typing import Any

import psycopg

PATIENCE_SECONDS = 30.0
PAUSE_SECONDS = 0.005

# A query inside a transaction would see the same snapshot of the statistics again and again.
BLOCKED = """
select exists (
  select from pg_stat_activity
  where pid = %(pid)s and wait_event_type = 'Lock'
    and (%(by)s::int is null or %(by)s::int = any (pg_blocking_pids(pid)))
)
"""
ACTIVITY = "select state, wait_event_type, wait_event, query from pg_stat_activity where pid = %s"


def backend_pid(connection: Any) -> int:
    """The server process of a psycopg or asyncpg connection."""
    if hasattr(connection, "get_server_pid"):
        return connection.get_server_pid()
    return connection.info.backend_pid


def wait_until_blocked(connection: psycopg.Connection, pid: int, by: int | None = None) -> None:
    """Return once `pid` waits for a lock, held by `by` if given. Needs a connection in autocommit mode."""
    assert connection.autocommit, "inside a transaction the statistics stand still"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _first(connection.execute(BLOCKED, {"pid": pid, "by": by}).fetchone()):
        if time.monotonic() > deadline:
            seen = connection.execute(ACTIVITY, (pid,)).fetchone()
            raise AssertionError(_not_blocked(pid, by, seen))
        time.sleep(PAUSE_SECONDS)


async def wait_until_blocked_async(
    connection: psycopg.AsyncConnection, pid: int, by: int | None = None
) -> None:
    """The same for a test whose event loop has to go on."""
    assert connection.autocommit, "inside a transaction the statistics stand still"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        cursor = await connection.execute(BLOCKED, {"pid": pid, "by": by})
        if _first(await cursor.fetchone()):
            return
        if time.monotonic() > deadline:
            seen = await (await connection.execute(ACTIVITY, (pid,))).fetchone()
            raise AssertionError(_not_blocked(pid, by, seen))
        await asyncio.sleep(PAUSE_SECONDS)


def _first(row: Any) -> bool:
    return bool(row and row[0])


def _not_blocked(pid: int, by: int | None, seen: Any) -> str:
    holder = f" held by {by}" if by is not None else ""
    return f"backend {pid} did not wait for a lock{holder} within {PATIENCE_SECONDS:.0f} s; last seen: {seen}"
