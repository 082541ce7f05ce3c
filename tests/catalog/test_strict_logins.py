"""The lifecycle of jobs and Work is tested in the strict profile: where, as whom, and what these logins cannot do."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.catalog import routines
from tests.clusters import Cluster, Database
from tests.doctor.examinations import patient, told
from tests.stores import Store
from tests.strict import LIFECYCLE, LOGINS, StrictDatabase, not_strict, strict_database

TESTS = Path(__file__).resolve().parents[1]
# What a test would write that makes a store of another kind by hand.
BY_HAND = (".template", "install_schema", "schema.apply(", "store_of_plain_owner")
WORK_TABLES = sorted({table for tables in routines.tables().values() for table in tables})
RIGHTS = """
select c.relname || ' ' || p.privilege
from pg_class c
cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p (privilege)
where c.relnamespace = 'onecommit'::regnamespace and c.relkind in ('r', 'p') and c.relname <> all (%s)
  and (has_table_privilege(c.oid, p.privilege)
       or p.privilege in ('select', 'insert', 'update', 'references') and has_any_column_privilege(c.oid, p.privilege))
union all
select c.relname || ' ' || p.privilege
from pg_class c
cross join unnest(array['select', 'usage', 'update']) p (privilege)
where c.relnamespace = 'onecommit'::regnamespace and c.relkind = 'S' and c.relname <> all (%s)
  and has_sequence_privilege(c.oid, p.privilege)
"""
POWERS = """
select array_remove(array[
    case when rolsuper then 'superuser' end, case when rolbypassrls then 'bypassrls' end,
    case when rolcreaterole then 'createrole' end, case when rolcreatedb then 'createdb' end,
    case when rolreplication then 'replication' end,
    case when pg_has_role('onecommit_migrator', 'member') then 'migrator' end,
    case when pg_has_role('onecommit_execution', 'member') then 'execution' end,
    case when exists (select from pg_class c where c.relnamespace = 'onecommit'::regnamespace
                      and pg_has_role(c.relowner, 'member')) then 'owner' end], null)
from pg_roles where rolname = session_user
"""


@pytest.fixture(scope="module")
def strict(postgres: Cluster) -> Iterator[StrictDatabase]:
    with strict_database(postgres) as fresh:
        yield fresh


@pytest.mark.pg
@pytest.mark.parametrize("login", LOGINS)
def test_no_login_has_a_right_to_a_table_of_jobs_or_a_power(strict: StrictDatabase, login: str):
    """Also the one that is a member of every capability."""
    named = [WORK_TABLES, WORK_TABLES]
    with closing(psycopg.connect(strict.login(login))) as session:
        assert session.execute("select session_user, current_user").fetchone() == (login, login)
        assert session.execute(POWERS).fetchone() == ([],)
        assert session.execute(RIGHTS, named).fetchall() == []
    with closing(psycopg.connect(strict.migrator_dsn)) as migrator:
        assert len(migrator.execute(RIGHTS, named).fetchall()) > len(WORK_TABLES)
        assert migrator.execute(POWERS).fetchone() == (["migrator", "execution", "owner"],)


@pytest.mark.pg
def test_the_doctor_calls_the_store_strict(strict: StrictDatabase):
    """Where the tests run it has nothing to say, and the product logs in as one of the logins."""
    assert urlsplit(strict.dsn).username in LOGINS
    with strict.connect() as observer, patient(observer) as store:
        report = store.examine(strict=True)
    assert (told(report), report.profile) == ([], "strict")


def test_the_lifecycle_is_what_the_requirement_names():
    """Worker, App, acceptance, chaos, drivers, commands and examples: none of them left the list silently."""
    assert sorted(LIFECYCLE) == [
        "acceptance", "app", "chaos", "cli", "demo", "drivers", "examples", "worker",
    ]  # fmt: skip
    assert [name for name in LIFECYCLE if not list((TESTS / name).glob("test_*.py"))] == []


@pytest.mark.parametrize("directory", LIFECYCLE)
def test_no_lifecycle_test_makes_another_store_by_hand(directory: str):
    made = [
        f"{path.name}: {words}"
        for path in (TESTS / directory).glob("*.py")
        for words in BY_HAND
        if words in path.read_text()
    ]
    assert made == []


@pytest.mark.pg
def test_a_fixture_with_another_store_is_refused(strict: StrictDatabase, store: Store):
    """As `tests/conftest.py` asks before each lifecycle test, of a database and of what has one."""
    plain = Database(name="x", dsn="x", cluster=strict.cluster)
    held = Store(database=strict, observer=store.observer, epoch=store.epoch)
    assert [not_strict(value) for value in (plain, store, strict, held, None, "x")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
