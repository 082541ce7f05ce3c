"""What `onecommit provision` makes is the strict profile; whatever takes it back is named."""

import json
import os
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from onecommit import schema
from onecommit.doctor import require_strict
from onecommit.errors import SchemaInconsistent

from tests.chaos.processes import ROOT
from tests.clusters import Cluster, Database
from tests.doctor.examinations import COMPLETE_JOB, patient, told
from tests.doctor.test_command import ONECOMMIT, run
from tests.schema.provisioned import PASSWORD, Provisioned, roles_in, strict_store

pytestmark = pytest.mark.pg

INHERIT_OPTION_SINCE = 16
# {0} is the bounded owner, {1} the migrator, {2} the producer.
BREAKS = [
    (["alter role {0} login"], "{0} can log in"),
    (["alter role {0} createdb"], "{0} has CREATEDB"),
    (["create role intruder", "grant {0} to intruder"], "{0} can be reached by its member intruder"),
    (["grant pg_read_all_data to {0}"], "{0} is a member of pg_read_all_data"),
    (["create schema own authorization {0}"], "{0} owns a schema"),
    (["grant create on schema onecommit to {0}"], "onecommit {0} can make objects in it"),
    (["grant select on onecommit.claim to {0} with grant option"], "claim {0} may grant SELECT on it"),
    (["alter role {2} replication"], "{2} uses the store and has REPLICATION"),
]  # fmt: skip


@pytest.fixture(scope="session")
def postgres(gate_postgres: Cluster) -> Cluster:
    """On 16 as well, the first major whose memberships have options of their own."""
    return gate_postgres


@pytest.fixture(scope="module")
def strict(postgres: Cluster) -> Iterator[Provisioned]:
    """Installed as it stands in the guide: roles, then the schema, then the roles' grants."""
    with strict_store(postgres) as store:
        yield store


def test_a_provisioned_store_is_strict(strict: Provisioned):
    """Without a finding, strict or not; so a pipeline may go on."""
    with patient(strict.admin) as store:
        report = store.examine(strict=True)
    assert told(report) == []
    assert report.profile == "strict"
    result = run("--strict", "--json", ONECOMMIT_DSN=strict.login("reader"))
    assert (result.returncode, json.loads(result.stdout)["profile"]) == (0, "strict")


@pytest.mark.parametrize(("statements", "said"), BREAKS, ids=[said for _, said in BREAKS])
def test_what_widens_an_owner_is_named(strict: Provisioned, statements: list[str], said: str):
    """Only where strict is asked for: the store still works, and is single-role."""
    names = [strict.role(each) for each in ("execution", "migrator", "producer")]
    with patient(strict.admin) as store:
        store.do(*(statement.format(*names) for statement in statements))
        report = store.examine(strict=True)
        assert told(store.examine()) == []
    assert any(said.format(*names) in line for line in told(report)), told(report)
    assert report.profile == "single-role"


def test_a_login_that_is_a_member_of_the_migrator_is_named_once_it_runs_jobs(strict: Provisioned):
    """The login that migrates is no runtime; one that does both reaches everything."""
    with patient(strict.admin) as store:
        store.do(f"create role jack login in role {strict.role('migrator')}")
        assert told(store.examine(strict=True)) == []
        store.do(f"grant {strict.role('executor')} to jack")
        lines = told(store.examine())
    assert any(line.startswith("runtime_roles: jack can become migrator_") for line in lines), lines


def test_a_definer_that_goes_back_to_the_migrator_is_named(strict: Provisioned):
    """That one and no other, strict or not: it would run with the rights of the schema's owner."""
    with patient(strict.admin) as store:
        store.do(f"alter function {COMPLETE_JOB} owner to {strict.role('migrator')}")
        lines = told(store.examine())
    assert len(lines) == 1
    assert lines[0].startswith("ownership: complete_job("), lines


def test_an_administrator_is_no_runtime(postgres: Cluster, empty_database: Database):
    """On a managed server who makes the roles is no superuser, and from PostgreSQL 16 on administers each of them."""
    with roles_in(empty_database) as store:
        admin = sql.Identifier(f"admin_{empty_database.name}")
        database = sql.Identifier(empty_database.name)
        store.admin.execute(
            sql.SQL("create role {} createrole login password {}").format(admin, PASSWORD)
        )
        store.admin.execute(sql.SQL("grant create on database {} to {}").format(database, admin))
        dsn = make_conninfo(
            empty_database.dsn, user=f"admin_{empty_database.name}", password=PASSWORD
        )
        with psycopg.connect(dsn, autocommit=True) as administrator:
            administrator.execute(store.text)
            store.apply()
            schema.initialize_epoch(store.migrator_dsn, actor="tests", reason="strict")
            administrator.execute(store.text)
        with patient(store.admin) as sound:
            assert told(sound.examine(strict=True)) == []
        with patient(store.admin) as broken:
            # Without the option an administrator's membership stays one for administering.
            option = " with inherit true" if postgres.major >= INHERIT_OPTION_SINCE else ""
            broken.do(f"grant {store.role('producer')} to admin_{empty_database.name}{option}")
            lines = told(broken.examine())
        assert any(
            f"can become {store.role('migrator')}, an owner of the store" in line for line in lines
        ), lines


def work(store: Provisioned, *members: str) -> subprocess.CompletedProcess[str]:
    """A worker that runs the queues empty under a login of its own, if it may start."""
    command = [
        ONECOMMIT,
        "worker",
        "tests.chaos.application:app",
        "--queue",
        "none",
        "--once",
        "--strict",
    ]
    [(store_id, epoch)] = store.admin.execute(
        "select store_id, active_epoch from onecommit.store_status()"
    ).fetchall()
    env = os.environ | {
        "ONECOMMIT_DSN": store.login(*members),
        "ONECOMMIT_STORE_ID": str(store_id),
        "ONECOMMIT_EPOCH": str(epoch),
    }
    return subprocess.run(
        command, env=env, cwd=ROOT, text=True, capture_output=True, check=False, timeout=90
    )


def test_a_worker_starts_strictly_only_in_a_strict_store(strict: Provisioned):
    """It ends before it registers, and names what it found; with the findings gone it runs.

    Its login cannot look at the store at work, and need not: that is no drift.
    """
    strict.admin.execute("alter table onecommit.work disable row level security")
    strict.admin.execute("alter table onecommit.progress set (fillfactor = 99)")
    try:
        refused = work(strict, "executor", "maintenance")
        assert refused.returncode == 78, refused.stderr
        assert "row_security: work has row-level security switched off" in refused.stderr
        assert "definitions: progress the table is: plain; fillfactor=99" in refused.stderr
        assert "onecommit doctor --strict" in refused.stderr
        assert strict.admin.execute("select from onecommit.worker").fetchall() == []
    finally:
        strict.admin.execute("alter table onecommit.work enable row level security")
        strict.admin.execute("alter table onecommit.progress set (fillfactor = 70)")
    ran = work(strict, "executor", "maintenance")
    assert ran.returncode == 0, ran.stderr


def test_the_error_names_a_few_findings_and_counts_the_rest(strict: Provisioned):
    """All of them are in the report, to which it points."""
    columns = [f"alter table onecommit.queue add extra_{n} integer" for n in range(11)]
    for statement in columns:
        strict.admin.execute(statement)
    try:
        with pytest.raises(SchemaInconsistent) as refused:
            require_strict(strict.login("executor"))
    finally:
        for n in range(11):
            strict.admin.execute(f"alter table onecommit.queue drop extra_{n}")
    assert refused.value.message.count("was made by no migration") == 8
    assert refused.value.message.endswith("; and 3 more")
    assert "onecommit doctor --strict" in refused.value.remedy
