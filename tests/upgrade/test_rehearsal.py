"""The upgrade from the previous release, live: expand, enable, fence, contract, and nothing is lost or done twice."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from onecommit import errors
from onecommit.doctor.catalog import read_inside
from onecommit.doctor.examination import judge
from onecommit.schema import Bundle, packaged_bundle
from onecommit.schema.bundle import Migration
from onecommit.version import __version__

from tests.chaos.processes import PATIENCE, ROOT, wait_until
from tests.clusters import Cluster
from tests.doctor.examinations import told
from tests.schema.observation import catalog
from tests.schema.provisioned import roles_in
from tests.upgrade import release
from tests.upgrade.deployment import WORKER, Deployment, deployment

pytestmark = [pytest.mark.pg, pytest.mark.timeout(600)]

NEW = ROOT / "src"
OLD_FIRST, NEW_FIRST = 0, 1_000_000
QUEUES = ("plain", "settle")
TOO_OLD = "no longer accepts this version of the package. Upgrade the onecommit package."
# What the previous release calls: its arguments and results, by name and place.
SIGNATURES = """
select p.oid::regprocedure::text, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prosecdef
from pg_proc p where p.pronamespace = 'onecommit'::regnamespace and exists (
    select from aclexplode(p.proacl) a where a.grantee <> p.proowner and a.grantee <> %s::regrole)
"""
LEFT = """
select (select count(*) from onecommit.ready r where not exists (
            select from onecommit.completion d where d.slot = r.slot and d.lane = r.lane and d.seq = r.seq))
     + (select count(*) from onecommit.scheduled) + (select count(*) from onecommit.lease)
     + (select count(*) from onecommit.work where state <> 'succeeded')
"""
# Of the ended workers: what they completed after the fence.
AFTER_THE_FENCE = """
select count(*) from onecommit.claim c
join onecommit.worker w using (worker)
cross join unnest(c.seqs) s (seq)
join onecommit.completion d on d.slot = c.slot and d.lane = c.lane and d.seq = s.seq
where w.info ->> 'version' = %s and (c.claimed_at > %s or d.outcome = 'completed' and d.finished_at > %s)
"""


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.install(tmp_path_factory.mktemp("release"))


@pytest.fixture
def deployed(postgres: Cluster, tmp_path: Path, old: Path) -> Iterator[Deployment]:
    """A strict store of the previous release, made by it alone as its guide says."""
    with postgres.database() as database, roles_in(database) as store:
        store.admin.execute("create table ledger (n integer primary key)")
        with deployment(store, tmp_path) as deployed:
            store.admin.execute(roles_text(deployed, old, release.capabilities()))
            printed = deployed.done(old, "migrate", "--init")
            store.admin.execute(roles_text(deployed, old, release.capabilities()))
            store.admin.execute(f"grant insert on ledger to {store.role('finalizer')}")
            lines = [line for line in printed.splitlines() if line.startswith("ONECOMMIT_")]
            deployed.identity = dict(line.split("=", 1) for line in lines)
            yield deployed


def roles_text(deployed: Deployment, version: Path, known: set[str]) -> str:
    names = [
        f"--role={each}={name}"
        for each, name in deployed.store.roles.items()
        if each in known | {"migrator", "execution"}
    ]
    return deployed.done(version, "provision", "--print", *names, dsn="")


def provisioned(deployed: Deployment, text: str) -> bool:
    """Whether it has run; it gives way to whoever holds a lock, and is run again."""
    try:
        deployed.store.admin.execute(text)
    except psycopg.errors.LockNotAvailable:
        deployed.store.admin.execute("rollback")
        return False
    return True


def signatures(deployed: Deployment) -> set[tuple]:
    execution = deployed.store.role("execution")
    return set(deployed.store.admin.execute(SIGNATURES, (execution,)).fetchall())


def granted(deployed: Deployment) -> dict[tuple, tuple[str, frozenset[str]]]:
    """Owner and grants of everything in the schema."""
    members = [row for row in deployed.store.objects() if row[0] == "member"]
    others = [row for row in deployed.store.objects() if row[0] != "member"]
    found = {(kind, name): (owner, frozenset(grants)) for kind, name, owner, grants in others}
    return found | {tuple(row[:3]): ("", frozenset()) for row in members}


def sound(deployed: Deployment) -> None:
    """The doctor of the new release has nothing to say, strictly."""
    deployed.done(NEW, "doctor", "--strict", dsn=deployed.store.login("reader"))


def sound_but_for(deployed: Deployment, bundle: Bundle, *said: str) -> None:
    """The same of a release that has no package yet, and so only our definitions."""
    with deployed.store.admin.transaction():
        catalogue = read_inside(deployed.store.admin, "onecommit")
    assert told(judge(catalogue, bundle, strict=True)) == list(said)


def contracted(bundle: Bundle) -> Bundle:
    """The release after this one: it drops what nothing of this one uses any more."""
    text = '-- writer_min: 6\nalter table "@schema@".schema_migration drop column applied_by;\n'
    drop = Migration(
        version=bundle.version + 1, name="drop", text=text, sha256="7" * 64, writer_min=6
    )
    return replace(bundle, package_version="0.3.0", migrations=(*bundle.migrations, drop))


def test_the_previous_release_is_replaced_while_it_works(deployed: Deployment, old: Path):
    """Each job is settled once and each item of Work succeeds, whoever ran it; grants and owners stay as they were."""
    first, second = deployed.worker(old, "first"), deployed.worker(old, "second")
    old_producer = deployed.producer(old, OLD_FIRST)
    deployed.progress(*((queue, release.VERSION) for queue in QUEUES))

    expand(deployed, old)
    successor, new_producer = deployed.worker(NEW, "successor"), deployed.producer(NEW, NEW_FIRST)
    deployed.progress(
        *((queue, each) for queue in QUEUES for each in (release.VERSION, __version__))
    )
    enable(deployed)

    contract_is_refused(deployed)
    assert first.end() == 0
    fence(deployed)
    assert second.process.wait(PATIENCE) == 78
    assert "is too old. Upgrade the onecommit package" in second.said()
    old_worker_is_refused(deployed, old)
    contract(deployed)
    deployed.progress(*((queue, __version__) for queue in QUEUES))

    enqueued = {OLD_FIRST: old_producer.count(), NEW_FIRST: new_producer.count()}
    settled(deployed, {first + n for first, count in enqueued.items() for n in range(count)})
    assert successor.end() == 0
    assert "loop.failed" not in deployed.everything_said()
    nothing_is_written_by_old_processes(deployed, old)


def expand(deployed: Deployment, old: Path) -> None:
    """Migrate, then the roles: what the old release uses keeps its owner, its grants and its form."""
    before, forms = granted(deployed), signatures(deployed)
    assert "applied 0006" in deployed.done(NEW, "migrate")
    migrated = granted(deployed)
    # Internal ones: no form of the old release is among them. By name, which no other routine has.
    dropped = {f"onecommit.{each.partition('(')[0]}" for each in packaged_bundle().dropped_routines}
    before = {
        each: held for each, held in before.items() if each[1].partition("(")[0] not in dropped
    }
    assert {each: migrated[each] for each in before} == before
    deployed.progress(*((queue, release.VERSION) for queue in QUEUES))
    text = roles_text(deployed, NEW, set(deployed.store.roles))
    wait_until(lambda: provisioned(deployed, text), what="the roles' SQL gets its locks")
    after = granted(deployed)  # of the manifest of this release, which may give more
    assert {each: after[each][0] for each in before} == {each: before[each][0] for each in before}
    assert [each for each in before if not before[each][1] <= after[each][1]] == []
    assert forms <= signatures(deployed)
    sound(deployed)
    unchanged = catalog(deployed.store.admin)
    assert "nothing to do" in deployed.done(old, "migrate")
    assert catalog(deployed.store.admin) == unchanged


def enable(deployed: Deployment) -> None:
    """While caller-owned completion is off both releases complete ordinary jobs; a worker without it keeps it off."""
    epoch = deployed.identity["ONECOMMIT_EPOCH"]
    status = (
        "select enabled_at is not null from onecommit.finalization_status() where queue = 'settle'"
    )
    with psycopg.connect(deployed.store.login("operator"), autocommit=True) as operator:
        operator.execute(
            "select onecommit.disable_caller_owned('settle', 'ada', 'rehearsal', %s)", (epoch,)
        )
        deployed.progress(("plain", release.VERSION), ("plain", __version__))
        with psycopg.connect(deployed.store.login(*WORKER), autocommit=True) as ancient:
            info = '{"queues": ["settle"]}'
            call = "select onecommit.register_worker('ancient', %s, %s)"
            (number,) = ancient.execute(call, (info, epoch)).fetchone()
            operator.execute(
                "select onecommit.allow_caller_owned('settle', 'ada', 'rehearsal', %s)", (epoch,)
            )
            assert not deployed.value(status)
            ancient.execute("select onecommit.retire_worker(%s, %s)", (number, epoch))
        assert deployed.value(status)
    deployed.progress(("settle", release.VERSION), ("settle", __version__))
    sound(deployed)


def contract_is_refused(deployed: Deployment) -> None:
    """As long as an older package may still work: nothing is changed, and the error says what to do."""
    unchanged = catalog(deployed.store.admin)
    with pytest.raises(errors.SchemaError, match=r"0008.*onecommit fence"):
        deployed.store.apply(bundle=contracted(packaged_bundle()))
    assert catalog(deployed.store.admin) == unchanged


def fence(deployed: Deployment) -> None:
    """Refused while an old worker is alive, which it names; with force that worker has nothing left to complete."""
    arguments = ("fence", "--actor", "ada", "--reason", "rehearsal", "--yes")
    refused = deployed.command(NEW, *arguments)
    assert refused.returncode == 1
    assert "workers of an older package are alive: second" in refused.stderr
    assert deployed.value("select writer_min from onecommit.store_metadata") == 1
    forced = deployed.done(NEW, *arguments, "--force")
    assert "writers from schema version 7 on" in forced
    assert "ended: second" in forced
    sound(deployed)


def old_worker_is_refused(deployed: Deployment, old: Path) -> None:
    """It ends with the code of a configuration that does not fit, and a sentence that names the remedy."""
    app = ("worker", "tests.upgrade.application:app")
    worker = deployed.command(old, *app, dsn=deployed.store.login(*WORKER))
    assert worker.returncode == 78
    assert TOO_OLD in worker.stderr


def contract(deployed: Deployment) -> None:
    """What the old release needed is dropped, and this one works on beside the newer schema."""
    before = granted(deployed)
    following = contracted(packaged_bundle())
    report = deployed.store.apply(bundle=following)
    assert report.applied_versions == (8,)
    assert granted(deployed) == before
    assert "nothing to do" in deployed.done(NEW, "migrate")
    sound_but_for(
        deployed, following, "definitions: schema_migration.applied_by the column is missing"
    )


def settled(deployed: Deployment, numbers: set[int]) -> None:
    """Every job and every item of Work that was enqueued, once."""
    wait_until(lambda: deployed.value(LEFT) == 0, what="everything has ended")
    rows = deployed.store.admin.execute("select n from ledger").fetchall()
    assert sorted(n for (n,) in rows) == sorted(numbers)
    assert deployed.value("select count(*) from onecommit.work") == len(numbers)
    assert deployed.value("select count(*) from onecommit.dead_letter") == 0
    completed = "select count(*) from onecommit.completion where outcome = 'completed'"
    # A job that was rescued or retried after its lease took another form completes as a lease; none did here.
    assert deployed.value(completed) == 2 * len(numbers)
    fenced = deployed.value(
        "select at from onecommit.operator_action where action = 'fence_writers'"
    )
    assert deployed.value(AFTER_THE_FENCE, release.VERSION, fenced, fenced) == 0


def nothing_is_written_by_old_processes(deployed: Deployment, old: Path) -> None:
    """With everything else at rest not one row differs after the old release's worker, application and migrate."""
    before, unchanged = deployed.rows(), catalog(deployed.store.admin)
    old_worker_is_refused(deployed, old)
    producer = deployed.producer(old, 2_000_000)
    assert producer.process.wait(PATIENCE) == 1
    assert TOO_OLD in producer.said()
    migrate = deployed.command(old, "migrate")
    assert migrate.returncode == 1
    assert "this package knows 5. Upgrade the onecommit package" in migrate.stderr
    assert deployed.rows() == before
    assert catalog(deployed.store.admin) == unchanged
