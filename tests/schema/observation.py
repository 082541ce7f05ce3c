"""What other sessions wait for, seen from the server; and runs in the background."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg

PATIENCE_SECONDS = 30


@contextmanager
def in_background(run: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Run something in a thread; the block ends when it has ended."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(run)


def waiting_pid(admin: psycopg.Connection, event: str, *, blocked_by: int | None = None) -> int:
    """The pid of a schema manager's session that waits for a lock, once the server shows the wait."""
    query = (
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name = 'onecommit schema' and wait_event_type = 'Lock' and wait_event = %s"
        " and (%s::int is null or %s::int = any(pg_blocking_pids(pid)))"
    )
    return until(admin, query, (event, blocked_by, blocked_by))


def until(admin: psycopg.Connection, query: str, parameters: tuple[object, ...] = ()) -> Any:
    """The first value of the query's first row, as soon as there is a row."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if row := admin.execute(query, parameters).fetchone():
            return row[0]
        admin.execute("select pg_sleep(0.005)")
    raise AssertionError(f"not observed in {PATIENCE_SECONDS} s: {query}")


def advisory_locks(admin: psycopg.Connection) -> list[int]:
    """The pids of the database's sessions that hold or await an advisory lock."""
    rows = admin.execute(
        "select pid from pg_locks where locktype = 'advisory'"
        " and database = (select oid from pg_database where datname = current_database())"
    )
    return [pid for (pid,) in rows]


def gone(admin: psycopg.Connection, pid: int) -> None:
    """Wait until the server has ended a session."""
    until(
        admin,
        "select true where not exists (select from pg_stat_activity where pid = %s)",
        (pid,),
    )


def catalog(admin: psycopg.Connection) -> list[tuple[Any, ...]]:
    """Every row of the catalog that DDL would add, change or touch."""
    return admin.execute(
        "select 'class', oid::bigint, xmin::text from pg_class where oid >= 16384"
        " union all select 'proc', oid::bigint, xmin::text from pg_proc where oid >= 16384"
        " union all select 'type', oid::bigint, xmin::text from pg_type where oid >= 16384"
        " union all select 'attribute', attrelid::bigint * 2000 + attnum, xmin::text from pg_attribute"
        " where attrelid >= 16384"
        " union all select 'namespace', oid::bigint, xmin::text from pg_namespace order by 1, 2"
    ).fetchall()
