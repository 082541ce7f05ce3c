"""A store in the strict profile: roles by capability, a migrator, a bounded owner of the definers, and a login for each."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from onecommit import schema
from onecommit.schema.grants import capabilities

from tests.clusters import Cluster, Database

PASSWORD = "only-for-tests"
LONGEST_NAME = 63
# Everything that has an owner or grants, with both.
OBJECTS = """
select 'schema', nspname, pg_get_userbyid(nspowner), array(select a::text from unnest(nspacl) a order by 1)
from pg_namespace where nspname = 'onecommit'
union all
select c.relkind::text, c.relname, pg_get_userbyid(c.relowner), array(select a::text from unnest(c.relacl) a order by 1)
from pg_class c where c.relnamespace = 'onecommit'::regnamespace
union all
select 'column', attrelid::regclass || '.' || attname, '', array(select a::text from unnest(attacl) a order by 1)
from pg_attribute where attacl is not null and attrelid in (select oid from pg_class where relnamespace = 'onecommit'::regnamespace)
union all
select 'routine', p.oid::regprocedure::text, pg_get_userbyid(p.proowner), array(select a::text from unnest(p.proacl) a order by 1)
from pg_proc p where p.pronamespace = 'onecommit'::regnamespace
union all
select 'type', t.typname, pg_get_userbyid(t.typowner), array(select a::text from unnest(t.typacl) a order by 1)
from pg_type t where t.typnamespace = 'onecommit'::regnamespace
union all
select 'policy', polname || ' on ' || polrelid::regclass, '', polroles::regrole[]::text[] from pg_policy
union all
select 'default', defaclobjtype::text || coalesce(defaclnamespace, 0), pg_get_userbyid(defaclrole), array(select a::text from unnest(defaclacl) a order by 1)
from pg_default_acl
union all
select 'member', roleid::regrole::text, member::regrole::text, '{}' from pg_auth_members
order by 1, 2, 3
"""


@dataclass(frozen=True, kw_only=True)
class Provisioned:
    """Names and ways into one database."""

    database: Database
    admin: psycopg.Connection
    roles: dict[str, str]

    @property
    def text(self) -> str:
        return schema.provision(self.roles)

    def role(self, capability: str) -> str:
        return self.roles[capability]

    def login(self, *members: str) -> str:
        """The DSN of a login that is a member of these roles and nothing else; made when first asked for."""
        name = "_".join(["login", *sorted(member[:12] for member in members), self.database.name])
        if len(name) > LONGEST_NAME:
            digest = hashlib.sha256(name.encode()).hexdigest()[:12]
            name = f"login_{digest}_{self.database.name}"
        if not self.admin.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone():
            self.admin.execute(
                sql.SQL("create role {} login password {}").format(sql.Identifier(name), PASSWORD)
            )
            for member in members:
                self.admin.execute(
                    sql.SQL("grant {} to {}").format(
                        sql.Identifier(self.roles[member]), sql.Identifier(name)
                    )
                )
        return make_conninfo(self.database.dsn, user=name, password=PASSWORD)

    @property
    def migrator_dsn(self) -> str:
        """A person's login, acting as the migrator from the start."""
        options = f"-c role={self.roles['migrator']}"
        return make_conninfo(self.login("migrator"), options=options)

    def objects(self) -> list[tuple]:
        """Owners and grants of everything in the schema, default privileges and memberships."""
        return self.admin.execute(OBJECTS).fetchall()

    def apply(self, **options) -> schema.SchemaReport:
        return schema.apply(self.migrator_dsn, **options)


@contextmanager
def roles_in(database: Database) -> Iterator[Provisioned]:
    """An empty database whose roles are dropped afterwards; nothing is provisioned yet."""
    names = {each: f"{each}_{database.name}" for each in (*capabilities(), "migrator", "execution")}
    with database.connect() as admin:
        yield Provisioned(database=database, admin=admin, roles=names)
        mine = admin.execute(
            "select rolname from pg_roles where rolname like %s", (f"%{database.name}",)
        ).fetchall()
        for (role,) in mine:
            admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
        # Who granted memberships goes last.
        for (role,) in sorted(mine, key=lambda row: row[0].startswith("admin_")):
            admin.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@contextmanager
def strict_store(cluster: Cluster) -> Iterator[Provisioned]:
    """Roles, the store by the migrator's login, and its roles again."""
    with (
        cluster.database() as database,
        roles_in(replace(database, is_strict=True)) as provisioned,
    ):
        provisioned.admin.execute(provisioned.text)
        provisioned.apply()
        schema.initialize_epoch(provisioned.migrator_dsn, actor="tests", reason="strict store")
        provisioned.admin.execute(provisioned.text)
        yield provisioned
