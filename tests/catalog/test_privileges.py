"""Nobody may do anything by default, and what runs as the owner cannot be tricked by its caller."""

from collections.abc import Iterator

import psycopg
import pytest

from onecommit.doctor.bodies import unqualified

from tests.catalog.routines import Catalog, capabilities
from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

PUBLIC_ANYTHING = """
select 'table ' || c.relname from pg_class c
where c.relnamespace = 'onecommit'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
  and exists (select from aclexplode(c.relacl) a where a.grantee = 0)
union all
select 'function ' || p.proname from pg_proc p
where p.pronamespace = 'onecommit'::regnamespace
  and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)
union all
select 'type ' || t.typname from pg_type t
where t.typnamespace = 'onecommit'::regnamespace and t.typtype <> 'b'
  and exists (select from aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a where a.grantee = 0)
union all
select 'schema' from pg_namespace n
where n.nspname = 'onecommit' and exists (select from aclexplode(n.nspacl) a where a.grantee = 0)
"""
# What a hostile caller puts in the way: its own relations, functions and operators under our and the system's names.
TRAPS = [
    "create function pg_temp.trap() returns boolean language plpgsql as $$ begin raise exception 'trapped'; end $$",
    "create function pg_temp.store_now() returns timestamptz language sql as $$ select pg_temp.trap()::text::timestamptz $$",
    "create function pg_temp.clock_timestamp() returns timestamptz language sql as $$ select pg_temp.trap()::text::timestamptz $$",
    "create function pg_temp.json_build_object(text, json) returns json language sql as $$ select pg_temp.trap()::text::json $$",
    "create function pg_temp.hashint8extended(bigint, bigint) returns bigint language sql as $$ select pg_temp.trap()::int $$",
    "create function pg_temp.same(bigint, bigint) returns boolean language sql as $$ select pg_temp.trap() $$",
    "create operator pg_temp.= (leftarg = bigint, rightarg = bigint, function = pg_temp.same)",
    "create temporary table completion (slot smallint, lane smallint, seq bigint)",
    "create temporary table claim (like completion)",
    "create temporary table lease (like completion)",
    "create temporary table progress (like completion)",
    "create domain pg_temp.tid as integer",
    "set search_path = pg_temp, pg_catalog, onecommit",
]


@pytest.fixture
def login(store: Store) -> Iterator[Engine]:
    """A session as a role that has nothing but its grants."""
    role = f"login_{store.database.name}"
    store.observer.execute(f"create role {role} nosuperuser")
    try:
        login = store.engine()
        login.sql(f"set session authorization {role}")
        yield login
    finally:
        login.rollback()
        login.sql("reset session authorization")
        login.sql("discard temp")
        store.observer.execute(f"drop owned by {role}")
        store.observer.execute(f"drop role {role}")


def grant(store: Store, login: Engine, *functions: str) -> None:
    role = login.value("select session_user")
    store.observer.execute(f"grant usage on schema onecommit to {role}")
    for function in functions:
        store.observer.execute(f"grant execute on function onecommit.{function} to {role}")


def denied(login: Engine, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        login.sql(statement)
    login.rollback()


def test_public_has_nothing(shared_store: Store):
    """No relation, no function, no type, not the schema."""
    assert shared_store.observer.execute(PUBLIC_ANYTHING).fetchall() == []


def test_definers_have_a_fixed_search_path(shared_store: Store):
    """With pg_temp last, where a caller's objects lie."""
    for routine in Catalog(shared_store.observer).routines.values():
        paths = [setting for setting in routine.config if setting.startswith("search_path=")]
        assert paths == (["search_path=pg_catalog, pg_temp"] if routine.is_definer else []), (
            routine.name
        )


def test_all_routines_have_one_owner(shared_store: Store):
    """Who also owns the tables, so that a definer can do exactly what the store needs."""
    owners = {routine.owner for routine in Catalog(shared_store.observer).routines.values()}
    tables = shared_store.observer.execute(
        "select distinct pg_get_userbyid(relowner) from pg_class where relnamespace = 'onecommit'::regnamespace"
    ).fetchall()
    assert [owners] == [{owner for (owner,) in tables}]


def test_bodies_qualify_every_relation(shared_store: Store):
    """As the doctor looks for names after from, join, into, update."""
    for routine in Catalog(shared_store.observer).routines.values():
        assert unqualified(routine.body) == [], routine.name


def test_without_grants_nothing_can_be_called_or_read(store: Store, login: Engine):
    """Not even with usage on the schema."""
    store.observer.execute(
        f"grant usage on schema onecommit to {login.value('select session_user')}"
    )
    allowed = login.sql(
        "select p.oid::regprocedure from pg_proc p where p.pronamespace = 'onecommit'::regnamespace "
        "and has_function_privilege(p.oid, 'execute')"
    )
    assert allowed == []
    denied(login, "select onecommit.store_now()")
    denied(login, "select onecommit.get_job(1)")
    tables = store.observer.execute(
        "select relname from pg_class where relnamespace = 'onecommit'::regnamespace and relkind in ('r', 'p')"
    )
    for (table,) in tables.fetchall():
        denied(login, f'select from onecommit."{table}"')
        denied(login, f'delete from onecommit."{table}"')


def test_a_finalizer_completes_and_can_do_nothing_else(store: Store, engine: Engine, login: Engine):
    """Execution on the one exact signature is enough, and reaches no further."""
    grant(store, login, "complete_job(bigint, bigint, integer, bigint, bigint, integer, jsonb)")
    attempts = engine.take(2)
    with login.open():
        assert login.complete_job(attempts[0], progress={"a": 1}).outcome == "completed"
    assert engine.materialize(attempts[1])
    with login.open():
        assert login.complete_job(attempts[1]).outcome == "completed"
    for statement in (
        "select onecommit.store_now()",
        "select onecommit.enqueue_jobs('q', '{k}', '{1}', null, 1)",
        "select from onecommit.claim",
        "select nextval('onecommit.job_number')",
        "select setval('onecommit.epoch_fence', 1)",
        "truncate onecommit.ready",
    ):
        denied(login, statement)


def test_a_hostile_search_path_reaches_no_definer(store: Store, engine: Engine, login: Engine):
    """Temporary objects under the names that the functions use are never looked at."""
    granted = ["complete_job(bigint, bigint, integer, bigint, bigint, integer, jsonb)",
               "enqueue_job(text, text, text, integer, integer, jsonb, bigint)",
               "enqueue_jobs(text, text[], text[], jsonb, bigint)", "get_job(bigint)",
               "attempt_status(bigint, bigint, integer, bigint, bigint, integer)"]  # fmt: skip
    grant(store, login, *granted)
    store.observer.execute(
        f"grant temporary on database {store.database.name} to {login.value('select session_user')}"
    )
    for trap in TRAPS:
        login.sql(trap)
    [attempt] = engine.take()
    assert login.status(attempt).state == "open"
    assert login.complete_job(attempt, progress={"a": 1}).outcome == "completed"
    for job in (login.enqueue_one(), *login.enqueue().job_ids):
        assert login.job(job).state == "ready"


def test_routines_work_under_an_empty_search_path(engine: Engine):
    """Every name in them is qualified, also in what no definer's own path would repair."""
    engine.sql("set search_path = ''")
    engine.register()
    done, retried, leased, cancelled = engine.take(4)
    assert engine.complete([done]) == ["closed"]
    assert engine.finish([retried], "retried") == ["closed"]
    assert engine.materialize(leased)
    assert engine.complete_job(leased).outcome == "completed"
    assert engine.cancel(cancelled.job_id) == {cancelled.job_id: "cancelled"}
    assert engine.promote().promoted == 1
    assert engine.tend()[0] in {"none", "rotate"}
    engine.retire()
    engine.rescue()
    assert engine.call("adopt_lane", p_queue="q", p_priority=1)[0].adopt_lane > 0
    assert len(engine.call("job_views", p_job_id=retried.job_id)) == 2


def test_the_manifest_is_no_wider_than_its_roles(shared_store: Store):
    """A producer cannot claim, an executor cannot rotate the epoch, a reader cannot write."""
    grants = {name: set(entry["grants"]) for name, entry in capabilities().items()}
    assert {name for name in grants if "producer" in grants[name]} == {
        "enqueue_job",
        "enqueue_jobs",
        "store_status",
    }
    writers = {
        name for name in grants if "reader" in grants[name] and capabilities()[name]["locks"]
    }
    assert writers == set()
    changing = {name for name in grants if "reader" not in grants[name]}
    assert not any({"operator", "executor"} <= grants[name] for name in changing)
