"""Logins that have one capability each and nothing else, as a host would provision them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from onecommit import schema

from tests.clusters import Cluster, Database
from tests.engine import Engine
from tests.stores import Store
from tests.template import install_schema

CAPABILITIES = (
    "work_acceptor",
    "work_dispatcher",
    "work_runtime",
    "work_operator",
    "work_retention",
    "reader",
)
PASSWORD = "only-for-tests"
BYPASS = """
select rolsuper or rolbypassrls or exists (
    select from pg_class c where c.relowner = r.oid or c.relrowsecurity and c.relnamespace = 'onecommit'::regnamespace
        and not row_security_active(c.oid))
from pg_roles r where rolname = current_user
"""


@dataclass(kw_only=True)
class Logins:
    """The roles of one database and their connections, which are kept from test to test."""

    database: Database
    owner: psycopg.Connection
    capabilities: tuple[str, ...] = CAPABILITIES
    _open: list[Engine] = field(default_factory=list)
    _idle: dict[str, list[Engine]] = field(default_factory=dict)

    def create(self) -> "Logins":
        """With a password of their own and the grants of the manifest, which can be given twice."""
        for capability in self.capabilities:
            self.owner.execute(
                sql.SQL("create role {} login password {}").format(
                    sql.Identifier(self.role(capability)), PASSWORD
                )
            )
        text = schema.grants({self.role(each): [each] for each in self.capabilities})
        self.owner.execute(text)
        self.owner.execute(text)
        return self

    def role(self, capability: str) -> str:
        return f"{capability}_{self.database.name}"

    def engine(self, capability: str) -> Engine:
        """A connection as this role, for which row-level security is at work."""
        idle = self._idle.setdefault(capability, [])
        engine = idle.pop() if idle else self._connect(capability)
        self._open.append(engine)
        return engine

    def _connect(self, capability: str) -> Engine:
        dsn = make_conninfo(self.database.dsn, user=self.role(capability), password=PASSWORD)
        engine = Engine(psycopg.connect(dsn, autocommit=True), epoch=0)
        engine.capability = capability
        assert engine.value(BYPASS) is False, "row-level security does not hold for this login"
        return engine

    def release(self) -> None:
        """Take the connections back after a test."""
        for engine in self._open:
            if not engine.connection.closed:
                engine.connection.cancel_safe()
                engine.rollback()
                engine.sql("reset all")
                self._idle[engine.capability].append(engine)
        self._open.clear()

    def drop(self) -> None:
        for engine in [*self._open, *(e for idle in self._idle.values() for e in idle)]:
            engine.connection.close()
        for capability in self.capabilities:
            role = sql.Identifier(self.role(capability))
            self.owner.execute(sql.SQL("drop owned by {}").format(role))
            self.owner.execute(sql.SQL("drop role {}").format(role))


@contextmanager
def store_of_plain_owner(cluster: Cluster) -> Iterator[Store]:
    """A store that a role without any privilege of its own installed and owns; only the test's observer is superuser."""
    with cluster.database() as database, database.connect() as superuser:
        owner = sql.Identifier(f"owner_{database.name}")
        superuser.execute(sql.SQL("create role {} login password {}").format(owner, PASSWORD))
        superuser.execute(
            sql.SQL("grant create on database {} to {}").format(
                sql.Identifier(database.name), owner
            )
        )
        install_schema(
            make_conninfo(database.dsn, user=f"owner_{database.name}", password=PASSWORD)
        )
        store = Store.of(database)
        yield store
        store.close()
        superuser.execute(sql.SQL("drop owned by {} cascade").format(owner))
        superuser.execute(sql.SQL("drop role {}").format(owner))


@pytest.fixture(scope="session")
def plain_store(postgres: Cluster) -> Iterator[Store]:
    """A store without a superuser in it."""
    with store_of_plain_owner(postgres) as store:
        yield store


@pytest.fixture(scope="session")
def shared_logins(shared_store: Store) -> Iterator[Logins]:
    """The logins of the store that tests share."""
    logins = Logins(database=shared_store.database, owner=shared_store.observer).create()
    yield logins
    logins.drop()


@pytest.fixture
def logins(shared_logins: Logins, store: Store) -> Iterator[Logins]:
    """The logins, for one test."""
    yield shared_logins
    shared_logins.release()
