"""What `onecommit provision` makes is the strict profile; whatever takes it back is named."""

import json
from collections.abc import Iterator

import pytest

from tests.clusters import Cluster
from tests.doctor.examinations import COMPLETE_JOB, patient, told
from tests.doctor.test_command import run
from tests.schema.provisioned import Provisioned, strict_store

pytestmark = pytest.mark.pg

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
