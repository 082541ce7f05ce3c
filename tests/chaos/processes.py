"""The real command line in processes of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.clusters import Database
from tests.strict import StrictDatabase

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0
PAUSE = 0.02

LEDGER = "create table ledger (n bigint not null, job bigint not null, pid bigint not null)"
OPEN_JOBS = """
select (select count(*) from onecommit.ready r where not exists (
            select from onecommit.completion c where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq))
     + (select count(*) from onecommit.scheduled)
"""


def environment(database: StrictDatabase, *, login: str = "application") -> dict[str, str]:
    """The environment of a process that belongs to the test's store: its login there, and that of its handlers' own connections."""
    return os.environ | database.environment(login) | {"HANDLER_DSN": database.login("finalizer")}


def start(
    *arguments: str, env: dict[str, str], stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """Start ``onecommit worker`` for the application."""
    command = [sys.executable, "-m", "onecommit", "worker", "tests.chaos.application:app"]
    return subprocess.Popen(
        [*command, *arguments], env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=stderr
    )


@contextmanager
def worker(*arguments: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The same, killed at the end if it still runs."""
    process = start(*arguments, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def terminate(process: subprocess.Popen[bytes]) -> int:
    """Ask it to drain, and return its exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE)


def observe(database: Database, query: str) -> int:
    """One number from the database; the server may be away for a moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with database.connect() as connection:
                return connection.execute(query).fetchone()[0]
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def wait_until(condition: Callable[[], bool], *, what: str) -> None:
    """Return as soon as the condition is seen to hold."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s: {what}"
        time.sleep(PAUSE)
