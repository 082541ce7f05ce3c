"""Run one embedded PostgreSQL server for all systems, and count statements in its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.processor_time import server_seconds
from onecommit.embedded import EmbeddedPostgres

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
    "log_line_prefix": "[%d] ",
}
_STATEMENT = re.compile(rb"^\[(\w+)\] LOG:  (?:statement|execute [^:]*):", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The running server."""

    postgres: EmbeddedPostgres

    def dsn(self, database: str = "postgres") -> str:
        """Return the connection URL of a database, as its superuser."""
        return self.postgres.dsn(database)

    def processor_seconds(self) -> float | None:
        """Return the processor time of the server so far, where it can be read."""
        postmaster = self.postgres.server.pid
        return None if postmaster is None else server_seconds(postmaster)

    def log_position(self) -> int:
        """Return how long the log is now."""
        return self.postgres.server.directory.log_file.stat().st_size

    def statements_since(self, position: int, database: str) -> int:
        """Count the statements of a database that logs all of them (`log_statement = all`)."""
        with self.postgres.server.directory.log_file.open("rb") as log:
            log.seek(position)
            return sum(name == database.encode() for name in _STATEMENT.findall(log.read()))


@contextmanager
def running_server(settings: dict[str, str] | None = None) -> Iterator[Server]:
    """Run a server on temporary data until the end, with these settings besides ours."""
    with EmbeddedPostgres(settings=SETTINGS | (settings or {})) as postgres:
        yield Server(postgres=postgres)
