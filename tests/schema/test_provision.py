"""`onecommit provision --print` writes SQL that makes a strict store, that can be run again, and that an upgrade keeps."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from onecommit import schema
from onecommit.errors import CapabilityMissing, InvalidArgument
from onecommit.schema.bundle import Migration, Routine
from onecommit.schema.lock import migration_lock

from tests.catalog.routines import capabilities
from tests.clusters import Cluster, Database
from tests.schema.provisioned import PASSWORD, Provisioned, roles_in, strict_store

OWNERS = """
select distinct prosecdef, pg_get_userbyid(proowner) from pg_proc where pronamespace = 'onecommit'::regnamespace
"""
PUBLIC = """
select p.proname from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
where p.pronamespace = 'onecommit'::regnamespace and a.grantee = 0
union all
select t.typname from pg_type t, aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a
where t.typnamespace = 'onecommit'::regnamespace and t.typtype <> 'b' and a.grantee = 0
union all
select c.relname from pg_class c, aclexplode(c.relacl) a where c.relnamespace = 'onecommit'::regnamespace and a.grantee = 0
"""


@pytest.fixture(scope="session")
def postgres(gate_postgres: Cluster) -> Cluster:
    """On 16 as well, the first major on which who makes a role is its administrator."""
    return gate_postgres


@pytest.fixture(scope="module")
def strict(postgres: Cluster) -> Iterator[Provisioned]:
    """A store in the strict profile, for tests that only look."""
    with strict_store(postgres) as store:
        yield store


@pytest.fixture
def empty(empty_database: Database) -> Iterator[Provisioned]:
    """Names of roles that are not there yet, and an empty database."""
    with roles_in(empty_database) as provisioned:
        yield provisioned


# --- the text


def test_the_same_arguments_give_the_same_text():
    """Whatever their order; nothing in it lets anybody log in."""
    text = schema.provision({"reader": "r", "producer": "p"}, schema="other store")
    assert text == schema.provision({"producer": "p", "reader": "r"}, schema="other store")
    assert 'grant usage on schema "other store" to "p";' in text
    assert not [
        line for line in text.splitlines() if "password" in line.lower() and "--" not in line
    ]
    assert "login;" not in text.replace("nologin", "")


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"owner": "o"}, "there is no owner"),
        ({"reader": ""}, "1 to 63 bytes"),
        ({"reader": "é" * 32}, "1 to 63 bytes"),
        ({"reader": "$provision$"}, "without"),
        ({"reader": "@schema@"}, "without"),
        ({"reader": "back\\slash"}, "without"),
        ({"reader": "Public"}, "of its own"),
        ({"reader": "pg_read_all_data"}, "of its own"),
        ({"reader": "same", "producer": "same"}, "a role of its own"),
    ],
)
def test_names_that_cannot_be_roles_are_refused(roles: dict[str, str], message: str):
    """Before any text is made."""
    with pytest.raises(InvalidArgument, match=message):
        schema.provision(roles)


def test_a_profile_that_is_not_there_is_refused():
    with pytest.raises(InvalidArgument, match="strict or single"):
        schema.provision(profile="lax")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onecommit", "provision", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_prints_the_text_and_connects_to_nothing():
    """With names of the operator's; without --print it says that nothing is done for you."""
    printed = run("--print", "--role", "reader=look", "--schema", "jobs")
    assert printed.stdout == schema.provision({"reader": "look"}, schema="jobs")
    assert run("--print", "--profile", "single").stdout == schema.provision(profile="single")
    assert run().returncode == 2
    for wrong in ("reader", "nobody=x"):
        refused = run("--print", "--role", wrong)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "role" in refused.stderr
    twice = run("--print", "--role", "reader=a", "--role", "reader=b")
    assert "named twice" in twice.stderr


# --- a database


@pytest.mark.pg
def test_it_can_be_run_again(strict: Provisioned):
    """Owners, grants, policies, default privileges and memberships stay as they are."""
    before = strict.objects()
    strict.admin.execute(strict.text)
    assert strict.objects() == before


@pytest.mark.pg
def test_it_gives_way_to_a_migration_that_runs(strict: Provisioned):
    """And says so soon, with nothing done."""
    before = strict.objects()
    lock = migration_lock("onecommit")
    with psycopg.connect(strict.migrator_dsn, autocommit=True) as migrator:
        migrator.execute("select pg_advisory_lock(%s)", (lock.key[0],))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            strict.admin.execute(strict.text)
        strict.admin.rollback()
    assert strict.objects() == before


@pytest.mark.pg
def test_definers_run_as_a_bounded_owner(strict: Provisioned):
    """It cannot log in, has no attribute, owns no schema and no table, and grants nothing on; the migrator owns the rest."""
    assert sorted(strict.admin.execute(OWNERS).fetchall()) == [
        (False, strict.role("migrator")),
        (True, strict.role("execution")),
    ]
    [powers] = strict.admin.execute(
        "select rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,"
        " exists (select from pg_namespace where nspowner = r.oid), exists (select from pg_class where relowner = r.oid),"
        " has_schema_privilege(r.oid, 'onecommit', 'create'),"
        " exists (select from pg_auth_members where member = r.oid),"
        " exists (select from pg_class c, aclexplode(c.relacl) a where a.grantee = r.oid and a.is_grantable)"
        " from pg_roles r where rolname = %s",
        (strict.role("execution"),),
    )
    assert not any(powers)
    members = strict.admin.execute(
        "select member::regrole::text from pg_auth_members where roleid = %s::regrole",
        (strict.role("execution"),),
    ).fetchall()
    assert members == [(strict.role("migrator"),)]


@pytest.mark.pg
def test_what_a_later_migration_creates_is_not_publics(strict: Provisioned):
    """Default privileges: not even before the migration's own revocation."""
    assert strict.admin.execute(PUBLIC).fetchall() == []
    with psycopg.connect(strict.migrator_dsn) as migrator:
        migrator.execute("create function onecommit.later() returns integer language sql return 1")
        migrator.execute("create table onecommit.later_table (n integer)")
        migrator.execute("create domain onecommit.later_domain as integer")
        # A table's row type follows no default; the migration's last statement takes it from PUBLIC.
        assert migrator.execute(PUBLIC).fetchall() == [("later_table",)]
        for role in (strict.role("execution"), "public"):
            allowed = migrator.execute(
                "select has_function_privilege(%s, 'onecommit.later()', 'execute')", (role,)
            ).fetchone()
            assert allowed == (role != "public",)
        migrator.rollback()


@pytest.mark.pg
def test_new_lanes_can_be_used_at_once(strict: Provisioned):
    """Their sequences are fences: on 17 and later a missing right would read as null, and nobody would notice."""
    schema.add_lanes(strict.migrator_dsn, 1)
    lacking = strict.admin.execute(
        "select c.relname from pg_class c where c.relnamespace = 'onecommit'::regnamespace and c.relkind = 'S'"
        " and not has_sequence_privilege(%(role)s, c.oid, 'select') "
        " or c.relname like 'lane%%' and c.relkind = 'S' and not has_sequence_privilege(%(role)s, c.oid, 'update')",
        {"role": strict.role("execution")},
    ).fetchall()
    assert lacking == []


@pytest.mark.pg
def test_only_the_owner_itself_adds_lanes(strict: Provisioned):
    """A superuser's or a member's own sequences would have no grants."""
    for dsn in (strict.database.dsn, strict.login("migrator")):
        with pytest.raises(CapabilityMissing, match="migrator"):
            schema.add_lanes(dsn, 1)


@pytest.mark.pg
def test_an_upgrade_keeps_owners_and_grants(strict: Provisioned):
    """The migrator replaces every routine, and nothing has changed hands."""
    before = strict.objects()
    strict.admin.execute(
        "create or replace function onecommit.chapter_is_open(p_slot smallint) returns boolean"
        " language sql return false"
    )
    assert strict.apply(reinstall_routines=True).routines_installed
    assert strict.objects() == before


@pytest.mark.pg
def test_a_new_version_works_before_its_roles_are_provisioned_and_is_bounded_after(
    postgres: Cluster,
):
    """A definer that meets a new table can use it at once; a new definer gets its owner with the roles."""
    old = schema.packaged_bundle()
    table = 'create table "@schema@".later (n integer);\n'
    head = 'create or replace function "@schema@".{}() returns bigint language sql security definer'
    head += " set search_path = pg_catalog, pg_temp"
    body = ' as $$ select count(*) from "@schema@".later $$;\n'
    routines = [
        Routine(area="store", name=name, text=head.format(name) + body)
        for name in ("mine", "yours")
    ]
    first = replace(old, routines=(*old.routines, routines[0]), routines_sha256="1" * 64)
    later = Migration(version=old.version + 1, name="later", text=table, sha256="3" * 64)
    second = replace(
        first,
        migrations=(*old.migrations, later),
        routines=(*old.routines, *routines),
        routines_sha256="2" * 64,
    )
    with strict_store(postgres) as store:
        store.apply(bundle=first)
        store.admin.execute(store.text)
        store.admin.execute(f"grant execute on function onecommit.mine() to {store.role('reader')}")
        before = set(map(str, store.objects()))
        store.apply(bundle=second)
        assert before <= set(map(str, store.objects()))
        assert store.admin.execute(PUBLIC).fetchall() == []
        with psycopg.connect(store.login("reader"), autocommit=True) as reader:
            assert reader.execute("select onecommit.mine()").fetchone() == (0,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute("select onecommit.yours()")
        owners = "select proname, pg_get_userbyid(proowner) from pg_proc where proname in ('mine', 'yours')"
        assert dict(store.admin.execute(owners).fetchall()) == {
            "mine": store.role("execution"),
            "yours": store.role("migrator"),
        }
        store.admin.execute(store.text)
        assert set(dict(store.admin.execute(owners).fetchall()).values()) == {
            store.role("execution")
        }


@pytest.mark.pg
def test_an_operator_who_is_no_superuser_can_run_it(empty: Provisioned):
    """As on a managed server: CREATEROLE, and CREATE on the database."""
    login = f"admin_{empty.database.name}"
    name = sql.Identifier(login)
    empty.admin.execute(
        sql.SQL("create role {} login createrole password {}").format(name, PASSWORD)
    )
    empty.admin.execute(
        sql.SQL("grant create on database {} to {}").format(
            sql.Identifier(empty.database.name), name
        )
    )
    dsn = make_conninfo(empty.database.dsn, user=login, password=PASSWORD)
    with psycopg.connect(dsn, autocommit=True) as operator:
        operator.execute(empty.text)
        empty.apply()
        operator.execute(empty.text)
        before = empty.objects()
        operator.execute(empty.text)
        assert empty.objects() == before
    assert {owner for _, owner in empty.admin.execute(OWNERS).fetchall()} == {
        empty.role("migrator"),
        empty.role("execution"),
    }


@pytest.mark.pg
def test_a_store_of_one_role_becomes_a_strict_one(database: Database):
    """Tables, types, routines and policies change hands; the epoch and the rows stay."""
    with roles_in(database) as old:
        before = schema.status(database.dsn)
        old.admin.execute(old.text)
        assert schema.status(old.migrator_dsn) == before
        foreign = old.admin.execute(
            "select relname from pg_class where relnamespace = 'onecommit'::regnamespace and relowner <> %(o)s::regrole"
            " union all select typname from pg_type where typnamespace = 'onecommit'::regnamespace and typowner <> %(o)s::regrole",
            {"o": old.role("migrator")},
        ).fetchall()
        assert foreign == []
        policies = old.admin.execute("select distinct polroles::regrole[]::text[] from pg_policy")
        assert sorted(policies.fetchall()) == sorted([(["-"],), ([old.role("execution")],)])


@pytest.mark.pg
def test_one_role_for_all_is_possible_and_is_called_not_strict(empty: Provisioned):
    """It owns the store and runs everything."""
    text = schema.provision({"migrator": empty.role("migrator")}, profile="single")
    assert "NOT STRICT" in text
    empty.admin.execute(text)
    empty.apply()
    before = empty.objects()
    empty.admin.execute(text)
    assert empty.objects() == before
    assert empty.admin.execute(OWNERS).fetchall() == [
        (False, empty.role("migrator")), (True, empty.role("migrator")),
    ]  # fmt: skip


@pytest.mark.pg
@pytest.mark.parametrize(
    ("capability", "attribute", "message"),
    [("reader", "bypassrls", "has attributes"), ("execution", "login", "can log in")],
)
def test_a_role_that_is_too_strong_is_refused(
    empty: Provisioned, capability: str, attribute: str, message: str
):
    """And nothing at all is done."""
    role = sql.Identifier(empty.role(capability))
    empty.admin.execute(sql.SQL("create role {} " + attribute).format(role))
    with pytest.raises(psycopg.errors.RaiseException, match=message):
        empty.admin.execute(empty.text)
    empty.admin.rollback()
    assert not empty.admin.execute(
        "select from pg_roles where rolname = %s", (empty.role("producer"),)
    ).fetchall()


@pytest.mark.pg
def test_each_role_executes_exactly_what_the_manifest_says(strict: Provisioned):
    """Neither less nor more, for every capability."""
    for capability, role in strict.roles.items():
        if capability in ("migrator", "execution"):
            continue
        allowed = strict.admin.execute(
            "select proname from pg_proc where pronamespace = 'onecommit'::regnamespace"
            " and has_function_privilege(%s, oid, 'execute')",
            (role,),
        ).fetchall()
        stated = {n for n, entry in capabilities().items() if capability in entry["grants"]}
        assert {name for (name,) in allowed} == stated, capability
