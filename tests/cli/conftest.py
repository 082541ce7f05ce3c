"""The program `onecommit`, run in this process as somebody with one login."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest

from onecommit.cli import main

from tests.clusters import Cluster
from tests.schema.provisioned import Provisioned, strict_store

MODULES = "app_of_"
"""How the names of the tests' applications begin."""
Program = Callable[..., "Ended"]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended, and everything that it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


@pytest.fixture(scope="module")
def strict(postgres: Cluster) -> Iterator[Provisioned]:
    """A store in the strict profile."""
    with strict_store(postgres) as provisioned:
        yield provisioned


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Program:
    """The program, as the console script runs it, with a login of a store in its environment."""

    def run(dsn: str, *arguments: object, **environment: str) -> Ended:
        for name in ("ONECOMMIT_APP", "ONECOMMIT_SCHEMA", "ONECOMMIT_STORE_ID", "ONECOMMIT_EPOCH"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"ONECOMMIT_DSN": dsn, "ONECOMMIT_ACTOR": "ada", **environment}.items():
            monkeypatch.setenv(name, value)
        for name in [name for name in sys.modules if name.startswith(MODULES)]:
            del sys.modules[name]  # as in a new process
        monkeypatch.setattr(sys, "argv", ["onecommit", *map(str, arguments)])
        capfd.readouterr()
        try:
            main()
        except SystemExit as end:
            code = end.code
        out, err = capfd.readouterr()
        return Ended(code=code if isinstance(code, int) else 1, out=out, err=err)

    return run


def identity(admin: psycopg.Connection) -> dict[str, str]:
    """What the deployment must say of the store, as it is now."""
    store_id, epoch = admin.execute(
        "select store_id, active_epoch from onecommit.store_status()"
    ).fetchone()
    return {"ONECOMMIT_STORE_ID": str(store_id), "ONECOMMIT_EPOCH": str(epoch)}


def everything(admin: psycopg.Connection) -> dict[str, str]:
    """A digest of the rows of each table of the store."""
    tables = [
        name
        for (name,) in admin.execute(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'onecommit'::regnamespace"
        )
    ]
    parts = (
        f"select '{name}', md5(coalesce(string_agg(t::text, '|' order by t::text), ''))"
        f' from onecommit."{name}" t'
        for name in tables
    )
    return dict(admin.execute(" union all ".join(parts)).fetchall())
