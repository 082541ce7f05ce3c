"""The store under attack: sessions of its logins, and everything in it as rows, to see whether an attack changed something."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from tests.clusters import Cluster
from tests.engine import Engine
from tests.schema.provisioned import Provisioned, strict_store

JOBS = ("producer", "executor", "maintenance", "finalizer", "callback_ingress", "operator")
WORK = ("work_acceptor", "work_dispatcher", "work_runtime", "work_operator", "work_retention")
TABLES = """
select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by c.oid
"""
# xmin and ctid too: a row that was written again with the same values is a change.
ROWS = """
select '{0}', count(*), md5(coalesce(string_agg(md5(r::text || r.xmin::text || r.ctid::text), '' order by r.ctid), '')) from only {0} r
"""
# Numbers are drawn outside the transaction: a refused operation may have drawn one. Fences move by setval alone.
FENCES = """
select sequencename::text, last_value from pg_sequences
where schemaname = 'onecommit' and sequencename in ('epoch_fence', 'head_fence', 'tail_fence', 'caller_owned_fence') order by 1
"""


@dataclass(kw_only=True)
class Target:
    """A strict store, its superuser, and engines whose logins are closed with it."""

    store: Provisioned
    major: int
    _open: list[psycopg.Connection] = field(default_factory=list)

    @property
    def admin(self) -> psycopg.Connection:
        return self.store.admin

    @property
    def epoch(self) -> int:
        return self.value("select active_epoch from onecommit.store_status()")

    def engine(self, *capabilities: str) -> Engine:
        """A session of a login that is a member of these roles and of nothing else."""
        connection = psycopg.connect(self.store.login(*capabilities), autocommit=True)
        self._open.append(connection)
        return Engine(connection, epoch=self.epoch)

    def superuser(self) -> psycopg.Connection:
        connection = self.store.database.connect()
        self._open.append(connection)
        return connection

    def name(self, *capabilities: str) -> sql.Identifier:
        """The login's name, made if it is not there."""
        dsn = psycopg.conninfo.conninfo_to_dict(self.store.login(*capabilities))
        return sql.Identifier(dsn["user"])

    def do(self, *statements: str) -> None:
        for statement in statements:
            self.admin.execute(statement)

    def value(self, statement: str, *values: Any) -> Any:
        return self.admin.execute(statement, values or None).fetchone()[0]

    def everything(self) -> list[tuple[Any, ...]]:
        """All rows of all tables as fingerprints, whatever the tables are called now, and the fences."""
        tables = [name for (name,) in self.admin.execute(TABLES)]
        rows = self.admin.execute("union all".join(ROWS.format(name) for name in tables)).fetchall()
        return sorted(rows) + self.admin.execute(FENCES).fetchall()

    def close(self) -> None:
        for connection in self._open:
            connection.close()


@contextmanager
def under_attack(cluster: Cluster) -> Iterator[Target]:
    """A new strict store; what a test leaves behind is the next one's."""
    with strict_store(cluster) as store:
        target = Target(store=store, major=cluster.major)
        yield target
        target.close()
