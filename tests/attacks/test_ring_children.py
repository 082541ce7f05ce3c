"""Nothing but the ring's own tables is truncated, whatever was put in their place, and at whatever moment."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from tests import observe
from tests.attacks.intruders import FENCES, Target
from tests.doctor.examinations import Patient, told
from tests.engine import Engine

pytestmark = pytest.mark.pg

QUICK = "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0', evacuate_after = '1 hour'"
# What an impostor has that the ring's own table has: owner and grants. {m} is the migrator, {x} the owner of the definers.
DRESS = ("alter table onecommit.{t} owner to {m}", "grant all on onecommit.{t} to {x}")


def impostor(table: str, *made: str) -> list[str]:
    """The table steps aside for another of its name."""
    family, slot = table.split("_")
    return [
        f"alter table onecommit.{family} detach partition onecommit.{table}",
        f"alter table onecommit.{table} rename to {table}_true",
        *(text.replace("@slot@", slot) for text in made),
        *(line.replace("{t}", table) for line in DRESS),
    ]


def exchanged(family: str) -> list[str]:
    """Two tables have each other's name; their bounds stay."""
    return [
        f"alter table onecommit.{family}_1 rename to aside",
        f"alter table onecommit.{family}_2 rename to {family}_1",
        f"alter table onecommit.aside rename to {family}_2",
    ]


def swapped(family: str) -> list[str]:
    """Two tables hold each other's slot."""
    detach = "alter table onecommit.{0} detach partition onecommit.{0}_{1}"
    attach = "alter table onecommit.{0} attach partition onecommit.{0}_{1} for values in ({2})"
    return [
        detach.format(family, 1),
        detach.format(family, 2),
        # The rows of the one do not fit the bound of the other.
        f"delete from onecommit.{family}_1",
        attach.format(family, 1, 2),
        attach.format(family, 2, 1),
    ]


NOTHING = (
    "create function public.nothing() returns trigger language plpgsql as 'begin return null; end'"
)
WRAPPER = (
    "create foreign data wrapper hollow",
    "create server nowhere foreign data wrapper hollow",
)
ATTACKS = {
    "claim_1 of another owner": (["alter table onecommit.claim_1 owner to {s}"], "claim_1 belongs to stranger"),
    "ready_1 detached": (["alter table onecommit.ready detach partition onecommit.ready_1"], "ready_1 is detached"),
    "claim_1 detached": (["alter table onecommit.claim detach partition onecommit.claim_1"], "claim_1 is detached"),
    "completion_1 detached": (["alter table onecommit.completion detach partition onecommit.completion_1"], "completion_1 is detached"),
    "claim_1 renamed": (["alter table onecommit.claim_1 rename to hidden"], "claim_1 is missing"),
    "ready exchanged": (exchanged("ready"), "ready_1 holds another slot than 1"),
    "claim exchanged": (exchanged("claim"), "claim_1 holds another slot than 1"),
    "completion exchanged": (exchanged("completion"), "completion_1 holds another slot than 1"),
    "claim swapped": (swapped("claim"), "claim_1 holds another slot than 1"),
    "claim_1 elsewhere, a table in its place": (
        ["create schema elsewhere", "alter table onecommit.claim_1 set schema elsewhere", "create table onecommit.claim_1 (like onecommit.claim)",
         *(line.replace("{t}", "claim_1") for line in DRESS)], "claim_1 is detached"),
    "claim_1 under another parent": (
        impostor("claim_1", "create table public.other (like onecommit.claim) partition by list (slot)",
                 "create table onecommit.claim_1 partition of public.other for values in (1)"), "claim_1 is attached to public.other"),
    "claim_1 a view": (impostor("claim_1", "create view onecommit.claim_1 as select * from onecommit.claim_1_true"),
                       "claim_1 is not an ordinary logged table"),
    "completion_1 a view": (impostor("completion_1", "create view onecommit.completion_1 as select * from onecommit.completion_1_true"),
                            "completion_1 is not an ordinary logged table"),
    "claim_1 a foreign table": (
        impostor("claim_1", *WRAPPER, "create foreign table onecommit.claim_1 (slot smallint) server nowhere"),
        "claim_1 is not an ordinary logged table"),
    "completion_1 a partitioned table": (
        impostor("completion_1", "create table onecommit.completion_1 partition of onecommit.completion for values in (1) partition by list (lane)",
                 "create table onecommit.below partition of onecommit.completion_1 default",
                 "insert into onecommit.completion_1 select * from onecommit.completion_1_true"),
        "completion_1 is not an ordinary logged table"),
    "claim_1 unlogged": (["alter table onecommit.claim_1 set unlogged"], "claim_1 is not an ordinary logged table"),
    "a trigger on completion_1": ([NOTHING, "create trigger spy before truncate on onecommit.completion_1 execute function public.nothing()"],
                                  "completion_1.spy is no trigger of this release"),
    "a rule on ready_1": (["create rule away as on delete to onecommit.ready_1 do instead nothing"], "ready_1.away a rule rewrites"),
    "row security on claim_1": (["alter table onecommit.claim_1 enable row level security"], "claim_1 has row-level security"),
    "row security forced on ready_1": (["alter table onecommit.ready_1 force row level security"], "ready_1 has row-level security"),
}  # fmt: skip


@pytest.fixture
def tender(target: Target) -> Iterator[Engine]:
    """The first chapter is closed and could be reclaimed; the login has what a worker has."""
    target.do(QUICK)
    tender = target.engine("producer", "executor", "maintenance")
    tender.register()
    ready, oldest = target.admin.execute(
        "select pg_sequence_last_value('onecommit.head_fence'), reclaimed + 1 from onecommit.ring"
    ).fetchone()
    if ready == oldest:
        tender.complete(tender.take(3))
        assert tender.tend()[0] == "rotate"
    target.do("update onecommit.ring set chapter_lifetime = '1 day'")
    return tender


@contextmanager
def attacked(target: Target, statements: list[str]) -> Iterator[Patient]:
    """What was done is seen by this one session, and undone with its transaction."""
    names = {
        "m": target.store.role("migrator"),
        "x": target.store.role("execution"),
        "s": f"stranger_{target.store.database.name}",
    }
    target.do(f"do $$ begin create role {names['s']}; exception when duplicate_object then end $$")
    with target.admin.transaction(force_rollback=True):
        for statement in statements:
            target.admin.execute(statement.format(**names) if "{" in statement else statement)
        yield Patient(connection=target.admin)


def tend_as(patient: Patient, login: sql.Identifier, epoch: int) -> list[tuple]:
    """As the worker's login, in the transaction of the attack; undone if it is refused."""
    with patient.connection.transaction():
        patient.connection.execute(sql.SQL("set local session authorization {}").format(login))
        rows = patient.connection.execute(
            "select * from onecommit.tend_ring(%s)", (epoch,)
        ).fetchall()
        patient.connection.execute("reset session authorization")
        return rows


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_not_the_rings_own_table_is_never_truncated(
    target: Target, tender: Engine, attack: str
):
    """The step is refused by name, every row and fence stays, and the doctor says what is wrong."""
    statements, said = ATTACKS[attack]
    login = target.name("producer", "executor", "maintenance")
    with attacked(target, statements) as patient:
        before = target.everything()
        with pytest.raises(psycopg.Error) as refused:
            tend_as(patient, login, tender.epoch)
        assert refused.value.sqlstate == "OC012", refused.value
        assert "doctor" in refused.value.diag.message_hint
        assert target.everything() == before
        lines = told(patient.examine(strict=True))
    assert any(said in line for line in lines), lines


PENDING = (
    "select inhdetachpending from pg_inherits where inhrelid = 'onecommit.completion_1'::regclass"
)
PATIENT = "alter function onecommit.tend_ring set lock_timeout = '{}'"
# Done while the reclaim is seen to wait. A table that was replaced has another oid, and nothing else that is wrong.
REPLACED = impostor("claim_1", "create table onecommit.claim_1 partition of onecommit.claim for values in (1)")  # fmt: skip


@pytest.fixture
def swapping(target: Target) -> Iterator[psycopg.Connection]:
    """Who holds locks and swaps; the reclaim waits for as long as that takes, and the ring is whole again afterwards."""
    target.do(PATIENT.format("1min"))
    yield target.superuser()
    target.do(PATIENT.format("100ms"))


@contextmanager
def waiting(target: Target, tender: Engine, by: psycopg.Connection) -> Iterator[list[str]]:
    """A reclaim that was seen to wait for the other session; its answer or SQLSTATE once it may go on."""
    answers: list[str] = []

    def tend() -> None:
        try:
            answers.append(tender.tend()[0])
        except psycopg.Error as error:
            answers.append(error.sqlstate)

    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(tend)
        try:
            observe.wait_until_blocked(target.admin, tender.pid, by.info.backend_pid)
            yield answers
        finally:
            by.execute("rollback")
            future.result(timeout=observe.PATIENCE_SECONDS)


def named(target: Target, statements: list[str]) -> list[str]:
    names = {"m": target.store.role("migrator"), "x": target.store.role("execution")}
    return [text.format(**names) if "{" in text else text for text in statements]


def rows_in(target: Target, name: str) -> int:
    return target.value(f"select count(*) from only onecommit.{name}")


@pytest.mark.parametrize("swap", ["exchanged", "replaced"])
def test_a_table_that_is_swapped_while_reclaim_waits_for_its_lock_is_not_truncated(
    target: Target, tender: Engine, swapping: psycopg.Connection, swap: str
):
    """It was right when it was looked at; under the lock it is another, even one that looks as it should."""
    swapping.execute("begin")
    swapping.execute("lock table onecommit.claim_1, onecommit.claim_2 in access exclusive mode")
    statements, true = (
        (exchanged("claim"), "claim_2") if swap == "exchanged" else (REPLACED, "claim_1_true")
    )
    fences = target.admin.execute(FENCES).fetchall()
    rows = None
    with waiting(target, tender, swapping) as answers:
        for statement in named(target, statements):
            swapping.execute(statement)
        rows = swapping.execute(f"select count(*) from only onecommit.{true}").fetchone()[0]
        swapping.execute("commit")
    assert answers == ["OC012"]
    assert rows == rows_in(target, true) > 0
    assert target.admin.execute(FENCES).fetchall() == fences
    put_back(target, swap)


def put_back(target: Target, swap: str) -> None:
    if swap == "exchanged":
        target.do(*exchanged("claim"))
    else:
        target.do(
            "drop table onecommit.claim_1",
            "alter table onecommit.claim_1_true rename to claim_1",
            "alter table onecommit.claim attach partition onecommit.claim_1 for values in (1)",
        )
    with attacked(target, []) as patient:
        lines = told(patient.examine(strict=True))
    # The time that it waits was changed for the test.
    assert [line for line in lines if "lock_timeout" not in line] == []


@pytest.mark.parametrize("lock", ["share", "access exclusive"])
def test_a_table_that_begins_to_be_detached_while_reclaim_waits_is_not_truncated(
    target: Target, tender: Engine, swapping: psycopg.Connection, lock: str
):
    """DETACH CONCURRENTLY needs no lock that reclaim's own reading of the table keeps away: before the proof and after it."""
    swapping.execute("begin")
    # An enqueue in flight keeps the share lock away, a reader the exclusive one.
    swapping.execute(
        f"lock table onecommit.ready_1 in {'row exclusive' if lock == 'share' else 'access share'} mode"
    )
    detaching = target.superuser()
    with ThreadPoolExecutor(1) as threads:
        with waiting(target, tender, swapping) as answers:
            detached = threads.submit(
                detaching.execute,
                "alter table onecommit.completion detach partition onecommit.completion_1 concurrently",
            )
            observe.wait_until_blocked(target.admin, detaching.info.backend_pid, tender.pid)
            assert target.value(PENDING) is True
            rows = rows_in(target, "completion_1")
        detached.result(timeout=observe.PATIENCE_SECONDS)
    assert answers == ["OC012"]
    assert rows_in(target, "completion_1") == rows > 0
    target.do(
        "alter table onecommit.completion attach partition onecommit.completion_1 for values in (1)"
    )


def test_what_was_refused_is_reclaimed_once_it_is_put_right(target: Target, tender: Engine):
    """With nothing lost; the last test of this module."""
    assert rows_in(target, "completion_1") > 0
    assert tender.tend() == ("reclaim", 1)
    assert [rows_in(target, f"{family}_1") for family in ("ready", "claim", "completion")] == [
        0,
        0,
        0,
    ]
