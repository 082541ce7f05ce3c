"""No role of the store has too much, by itself or through others; each path is named with its steps."""

import pytest

from onecommit import schema

from tests import logins
from tests.clusters import Cluster
from tests.doctor.examinations import COMPLETE_JOB, patient, told
from tests.stores import Store

pytestmark = pytest.mark.pg

ROLES = ["create role app login", "create role one", "create role two"]
CAPABILITIES = (
    "producer",
    "executor",
    "maintenance",
    "finalizer",
    "callback_ingress",
    "operator",
    *logins.CAPABILITIES,
)
GRANTS = schema.grants({"app": ["producer", "work_runtime"]})

EXCESSES = [
    ("grant execute on function onecommit.record_action to app", "record_action(text, text, text, text) app may call it"),
    ("grant execute on function onecommit.add_lanes to app", "add_lanes(integer) app may call it"),
    (f"grant execute on function {COMPLETE_JOB} to app with grant option", "app may grant EXECUTE on"),
    ("grant create on schema onecommit to app", "onecommit app has CREATE"),
    ("grant select on onecommit.claim to app", "claim app has SELECT"),
    ("grant delete on onecommit.work to app", "work app has DELETE"),
    ("grant update on onecommit.work to app", "work app has UPDATE"),
    ("grant update (scope_id) on onecommit.work to app", "work.scope_id app has UPDATE"),
    ("grant usage on sequence onecommit.job_number to app", "job_number app has USAGE"),
    ("alter default privileges in schema onecommit grant execute on functions to app", "app gets EXECUTE on whatever"),
]  # fmt: skip
LACKS = [
    ("revoke usage on schema onecommit from app", "app may call routines but lacks USAGE"),
    ("revoke execute on function onecommit.enqueue_jobs from app", "app lacks EXECUTE for its capability producer: enqueue_jobs"),
    ("revoke update (revision) on onecommit.work from app", "app lacks rights on work for its capability work_runtime"),
]  # fmt: skip
POWERS = [
    (["alter role app bypassrls"], "app uses the store and has BYPASSRLS"),
    (["alter role app superuser"], "app uses the store and is a superuser"),
    (["grant postgres to one", "grant one to two", "grant two to app"], "postgres (set)"),
    (["grant pg_read_all_data to one", "grant one to app"], "app can become pg_read_all_data"),
    (["create role boss bypassrls", "grant boss to two", "grant two to app"], "app can become boss, who has BYPASSRLS"),
    (["grant pg_execute_server_program to app with admin option"], "app can become pg_execute_server_program"),
    (["create role clerk login", "grant app to one", "grant one to clerk", "alter role clerk bypassrls"],
     "clerk uses the store and has BYPASSRLS"),
]  # fmt: skip
# From PostgreSQL 16 on each membership says for itself what it gives.
OPTIONS = [
    (["grant postgres to one with inherit false, set false", "grant one to app"], None),
    (["grant postgres to one with inherit false, set true", "grant one to two with inherit true, set false", "grant two to app"], None),
    (["grant postgres to one with inherit true, set false", "grant one to two with inherit true, set false",
      "grant two to app with inherit false, set true"], "app → two (set) → one (inherit) → postgres (inherit)"),
    (["grant postgres to one with inherit false, set true", "grant one to two with inherit false, set true",
      "grant two to app with inherit false, set true"], "app → two (set) → one (set) → postgres (set)"),
    (["grant postgres to one with inherit false, set false, admin true", "grant one to two with inherit true, set false",
      "grant two to app with inherit true, set false"], "app → two (inherit) → one (inherit) → postgres (admin)"),
    (["create role boss bypassrls", "grant boss to app with inherit true, set false"], None),
    (["grant pg_write_all_data to app with inherit false, set false"], None),
]  # fmt: skip


@pytest.fixture(scope="session")
def postgres(gate_postgres: Cluster) -> Cluster:
    """On 16 as well, the first major whose memberships have options of their own."""
    return gate_postgres


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_role_with_the_grants_of_its_capability_has_no_finding(
    shared_store: Store, capability: str
):
    """Nothing too much, nothing missing, for each capability alone."""
    with patient(shared_store.observer) as store:
        store.do(*ROLES, schema.grants({"app": [capability]}))
        assert told(store.examine()) == []


def test_a_finalizer_may_do_without_the_status(shared_store: Store):
    """Execution on the one signature is all that it needs."""
    with patient(shared_store.observer) as store:
        store.do(
            *ROLES,
            "grant usage on schema onecommit to app",
            f"grant execute on function {COMPLETE_JOB} to app",
        )
        assert told(store.examine()) == []


@pytest.mark.parametrize(("statement", "said"), EXCESSES + LACKS)
def test_a_grant_too_many_or_too_few_is_named(shared_store: Store, statement: str, said: str):
    """Whoever gave or took it."""
    with patient(shared_store.observer) as store:
        store.do(*ROLES, GRANTS, statement)
        report = store.examine()
    lines = told(report)
    assert {name for name, _ in report.findings} == {"role_grants"}, lines
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(("statements", "said"), POWERS, ids=[said for _, said in POWERS])
def test_a_role_that_becomes_too_strong_is_named(
    shared_store: Store, statements: list[str], said: str
):
    """By an attribute, or by a membership two roles away."""
    with patient(shared_store.observer) as store:
        store.do(*ROLES, GRANTS, *statements)
        report = store.examine()
    lines = told(report)
    assert {name for name, _ in report.findings} == {"runtime_roles"}, lines
    assert any(said in line for line in lines), lines


def test_a_role_that_inherits_nothing_may_still_set(shared_store: Store, postgres: Cluster):
    """NOINHERIT keeps nobody from SET ROLE."""
    with patient(shared_store.observer) as store:
        store.do("create role app login noinherit", "create role one", "create role two", GRANTS)
        store.do("grant postgres to one", "grant one to app")
        lines = told(store.examine())
    assert any("app → one (set) → postgres (set)" in line for line in lines), lines


@pytest.mark.parametrize(("statements", "said"), OPTIONS, ids=[str(said) for _, said in OPTIONS])
def test_the_options_of_each_membership_count(
    shared_store: Store, postgres: Cluster, statements: list[str], said: str | None
):
    """A path ends where its next step may neither be set nor inherited."""
    if postgres.major < 16:
        pytest.skip("memberships have options from PostgreSQL 16 on")
    with patient(shared_store.observer) as store:
        store.do(*ROLES, GRANTS, *statements)
        lines = told(store.examine())
    assert any(said in line for line in lines) if said else lines == [], lines


def test_what_stands_in_the_way_of_strict_is_named_only_when_asked(shared_store: Store):
    """An owner who is a superuser is the single-role profile, and no finding in it."""
    with patient(shared_store.observer) as store:
        store.do(*ROLES, GRANTS, "alter role app createrole")
        assert told(store.examine()) == []
        lines = told(store.examine(strict=True))
    for said in (
        "postgres is a superuser",
        "postgres can log in",
        "the profile is single-role",
        "app uses the store and has CREATEROLE",
    ):
        assert any(said in line for line in lines), (said, lines)
