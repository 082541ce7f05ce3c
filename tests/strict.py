"""The strict profile as the product meets it: a store of a migrator, and logins that may do their part and nothing else.

The roles are made once on each server; a test gets a copy of the database that they were provisioned in.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from onecommit import schema
from onecommit.schema.grants import capabilities

from tests.clusters import Cluster, Database
from tests.engine import Engine
from tests.stores import Store

# The directories whose tests meet a strict store and no other: `tests/conftest.py` holds them to it. A store of a single
# role has its tests where servers are embedded: `tests/embedded`, `App.embedded()` and the demo.
LIFECYCLE = ("acceptance", "app", "chaos", "cli", "demo", "drivers", "examples", "worker")
# What asks how a program speaks, and not what a login may, of a store of a single role.
SINGLE_ROLE = ("cli/test_shell.py",)
TEMPLATE = "onecommit_strict"
PASSWORD = "only-for-tests"
MIGRATOR = "deploy"
# `application` is a process that does everything that a runtime may; the others are what a deployment has.
LOGINS = {
    "application": tuple(sorted(capabilities())),
    "web": ("producer", "work_acceptor"),
    "worker": ("executor", "maintenance", "work_dispatcher", "work_runtime"),
    "finalizer": ("finalizer",),
    "caller": ("finalizer", "producer", "work_acceptor"),
    "ingress": ("callback_ingress",),
    "operators": ("operator", "reader", "work_operator", "work_retention"),
}
BUSINESS = "business"
"""Owns nothing of the store: the rights to the application's own tables, which each login has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictDatabase(Database):
    """A strict store; its DSN is that of a login with all capabilities of the runtime."""

    def login(self, name: str) -> str:
        """The DSN of one of the logins."""
        url = urlsplit(self.observer_dsn)
        account = f"{quote(name)}:{PASSWORD}@{url.hostname}:{url.port}"
        return urlunsplit(url._replace(netloc=account))

    @property
    def identity(self) -> dict[str, Any]:
        """What a process must say of the store that it is meant for, since it is not the owner."""
        with self.connect() as connection:
            store_id, epoch = connection.execute(
                "select store_id, active_epoch from onecommit.store_status()"
            ).fetchone()
        return {"store_id": store_id, "epoch": epoch}

    def environment(self, login: str = "application") -> dict[str, str]:
        """The variables of a process with this login."""
        identity = self.identity
        return {
            "ONECOMMIT_DSN": self.login(login),
            "ONECOMMIT_STORE_ID": str(identity["store_id"]),
            "ONECOMMIT_EPOCH": str(identity["epoch"]),
        }

    @property
    def migrator_dsn(self) -> str:
        """Whoever deploys, acting as the migrator from the start."""
        options = urlencode({"options": "-c role=onecommit_migrator"}, quote_via=quote)
        return f"{self.login(MIGRATOR)}?{options}"


def not_strict(value: Any) -> bool:
    """Whether this is, or has, a database that is not in the strict profile."""
    database = getattr(value, "database", value)
    return isinstance(database, Database) and not database.is_strict


@contextmanager
def strict_database(cluster: Cluster) -> Iterator[StrictDatabase]:
    """A fresh database in the strict profile with an active epoch."""
    template = cluster.template_of(TEMPLATE, lambda dsn: _install(cluster, dsn))
    with cluster.database(template=template) as fresh:
        strict = StrictDatabase(name=fresh.name, dsn=fresh.dsn, cluster=cluster, is_strict=True)
        yield replace(strict, dsn=strict.login("application"))


@contextmanager
def engine_of(store: Store, login: str) -> Iterator[Engine]:
    """The functions of a strict store, as this login may call them."""
    with closing(psycopg.connect(store.database.login(login), autocommit=True)) as connection:
        yield Engine(connection, epoch=store.epoch)


@pytest.fixture
def database(postgres: Cluster) -> Iterator[StrictDatabase]:
    """A strict store for one test."""
    with strict_database(postgres) as fresh:
        yield fresh


@pytest.fixture(scope="session")
def shared_store(postgres: Cluster) -> Iterator[Store]:
    """The strict store that tests of one major share; its engines are the test's own."""
    with strict_database(postgres) as fresh:
        store = Store.of(fresh)
        yield store
        store.close()


def _install(cluster: Cluster, dsn: str) -> None:
    """As docs/how-to/production.md says: roles, migration, roles; then the logins."""
    database = StrictDatabase(name=TEMPLATE, dsn=dsn, cluster=cluster)
    text = schema.provision()
    with database.connect() as admin:
        admin.execute(text)
        _create_logins(admin)
        schema.apply(database.migrator_dsn)
        schema.initialize_epoch(database.migrator_dsn, actor="tests", reason="strict template")
        admin.execute(text)


def _create_logins(admin: psycopg.Connection) -> None:
    """No login has a right of its own: what it may do comes from its roles."""
    create = sql.SQL("create role {} login password {}")
    grant = sql.SQL("grant {} to {}")
    admin.execute(f"create role {BUSINESS}")
    for login, members in {**LOGINS, MIGRATOR: ("migrator",)}.items():
        admin.execute(create.format(sql.Identifier(login), PASSWORD))
        for role in (*(f"onecommit_{member}" for member in members), BUSINESS):
            admin.execute(grant.format(sql.Identifier(role), sql.Identifier(login)))
    admin.execute(f"grant create on schema public to {BUSINESS}")
    admin.execute("create schema app")
    admin.execute(f"grant usage on schema app to {BUSINESS}")
    for each in ("public", "app"):
        admin.execute(
            f"alter default privileges in schema {each} grant all on tables to {BUSINESS}"
        )
