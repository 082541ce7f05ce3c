"""In the strict profile each role reaches what its capability needs, and every other statement is refused."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from onecommit.schema.grants import capabilities

from tests.catalog import routines
from tests.clusters import Cluster
from tests.schema.provisioned import Provisioned, strict_store

pytestmark = pytest.mark.pg

CAPABILITIES = sorted(capabilities())
# What a role could do to a relation, as statements; permission is checked before a row is looked at.
STATEMENTS = """
select c.relname, s.privilege, format(s.statement, c.relname, a.attname), a.attname
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
join (values ('select', 'select %2$I from onecommit.%1$I limit 0'), ('update', 'update onecommit.%1$I set %2$I = default where false'),
             ('insert', 'insert into onecommit.%1$I (%2$I) select %2$I from onecommit.%1$I where false'),
             ('delete', 'delete from onecommit.%1$I where false'), ('truncate', 'truncate onecommit.%1$I'))
    s (privilege, statement) on s.privilege in ('select', 'update') or a.attnum = (
        select min(i.attnum) from pg_attribute i
        where i.attrelid = c.oid and i.attnum > 0 and not i.attisdropped and i.attidentity = '' and i.attgenerated = '')
where c.relnamespace = 'onecommit'::regnamespace and c.relkind in ('r', 'p')
union all
select c.relname, s.privilege, format(s.statement, c.relname), null
from pg_class c, (values ('select', 'select last_value from onecommit.%I'), ('usage', 'select nextval(''onecommit.%I'')'),
                         ('update', 'select setval(''onecommit.%I'', 1)')) s (privilege, statement)
where c.relnamespace = 'onecommit'::regnamespace and c.relkind = 'S'
"""
# From a subquery that is not pulled up: a strict function of a constant null would be folded and not called at all.
CALLS = """
select p.proname, format('select onecommit.%I(%s) from (select %s offset 0) x', p.proname,
                         (select string_agg(format('x.a%s', n), ', ' order by n) from generate_series(1, p.pronargs) n),
                         coalesce((select string_agg(format('null::%s a%s', format_type(t, null), n), ', ' order by n)
                                   from unnest(p.proargtypes) with ordinality t (t, n)), '1'))
from pg_proc p where p.pronamespace = 'onecommit'::regnamespace and p.prorettype <> 'trigger'::regtype
"""
REFUSED = """
create function pg_temp.refused(p_statements text[]) returns boolean[] language plpgsql as $$
declare
    v_refused boolean[] := '{}';
    v_statement text;
begin
    foreach v_statement in array p_statements loop
        begin
            execute v_statement;
            raise exception 'it was allowed' using errcode = '55000';
        exception
            when insufficient_privilege then v_refused := v_refused || true;
            when others then v_refused := v_refused || false;
        end;
    end loop;
    return v_refused;
end $$
"""


@pytest.fixture(scope="module")
def strict(postgres: Cluster) -> Iterator[Provisioned]:
    with strict_store(postgres) as store:
        yield store


@pytest.fixture(scope="module", params=CAPABILITIES)
def capability(request: pytest.FixtureRequest) -> str:
    """Each of them once."""
    return request.param


@pytest.fixture
def session(strict: Provisioned, capability: str) -> Iterator[psycopg.Connection]:
    """A login that is a member of the one role."""
    with psycopg.connect(strict.login(capability), autocommit=True) as connection:
        connection.execute(REFUSED)
        yield connection


def refused(session: psycopg.Connection, statements: list[str]) -> list[bool]:
    [(answers,)] = session.execute("select pg_temp.refused(%s)", (statements,)).fetchall()
    return answers


def stated(capability: str) -> dict[tuple[str, str], set[str] | None]:
    """By relation and privilege the columns that the manifest names, or None for all of them."""
    found: dict[tuple[str, str], set[str] | None] = {}
    for table, privileges in routines.tables().get(capability, {}).items():
        for text in privileges:
            privilege, _, columns = text.partition(" (")
            found[table, privilege] = set(columns.rstrip(")").split(", ")) if columns else None
    return found


def test_every_statement_on_every_relation_is_refused_or_stated(
    strict: Provisioned, capability: str, session: psycopg.Connection
):
    """Select and update column by column, insert, delete, truncate; of sequences also nextval and setval."""
    cells = strict.admin.execute(STATEMENTS).fetchall()
    assert len(cells) > 1500
    answers = refused(session, [statement for _, _, statement, _ in cells])
    allowed = stated(capability)
    for (relation, privilege, statement, column), was_refused in zip(cells, answers, strict=True):
        columns = allowed.get((relation, privilege), set())
        expected = columns is None or column in columns
        # An insert of our form reads too; the Work runtime may insert a result and not read it.
        if privilege == "insert" and (relation, "select") not in allowed:
            expected = False
        assert was_refused != expected, statement


def test_every_routine_that_is_not_granted_is_refused(
    strict: Provisioned, capability: str, session: psycopg.Connection
):
    """By a call, not by the catalogue."""
    calls = dict(strict.admin.execute(CALLS).fetchall())
    granted = {n for n, e in routines.capabilities().items() if capability in e["grants"]}
    lacking = sorted(calls.keys() - granted)
    assert len(lacking) > 150
    answers = refused(session, [calls[name] for name in lacking])
    assert [name for name, was in zip(lacking, answers, strict=True) if not was] == []


def test_no_login_of_the_runtime_reaches_a_table_of_jobs(strict: Provisioned, capability: str):
    """Whatever the privilege; of Work the runtime and readers have some, and readers see which schema this is."""
    rows = strict.admin.execute(
        "select c.relname, a.privilege_type from pg_class c, aclexplode(c.relacl) a"
        " where c.relnamespace = 'onecommit'::regnamespace and a.grantee = %(role)s::regrole"
        " union select c.relname, a.privilege_type from pg_class c join pg_attribute t on t.attrelid = c.oid,"
        " aclexplode(t.attacl) a where c.relnamespace = 'onecommit'::regnamespace and a.grantee = %(role)s::regrole",
        {"role": strict.role(capability)},
    ).fetchall()
    assert {(name, privilege.lower()) for name, privilege in rows} == set(stated(capability))
    of_work = {"scope", "scope_history", "work", "work_payload", "work_result", "dispatch", "effect_permit",
               "work_history", "operator_command", "epoch_fence"}  # fmt: skip
    of_schema = {"store_metadata", "schema_migration", "routine_install"}
    assert {name for name, _ in rows} <= of_work | (of_schema if capability == "reader" else set())


def test_no_login_becomes_somebody_else(
    strict: Provisioned, capability: str, session: psycopg.Connection
):
    """Neither the migrator, nor the owner of the definers, nor another capability; nor does it make anything."""
    others = [role for name, role in strict.roles.items() if name != capability]
    statements = [sql.SQL("set role {}").format(sql.Identifier(r)).as_string() for r in others]
    statements += [
        "create table onecommit.mine (n integer)",
        "create function onecommit.mine() returns integer language sql return 1",
        "alter table onecommit.work no force row level security",
        "alter table onecommit.work disable row level security",
        "create policy mine on onecommit.work using (true)",
        "alter function onecommit.store_now() owner to current_user",
        "grant select on onecommit.ready to current_user",
        "lock table onecommit.ready in access exclusive mode",
    ]
    assert all(refused(session, statements))
