"""What goes on in a store is judged by the check that is for it: stuck, slow or waiting for somebody."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from onecommit.app.app import App
from onecommit.app.context import JobContext
from onecommit.doctor import DoctorReport, catalog, examine, vitals
from onecommit.doctor.examination import with_vitals
from onecommit.doctor.vital_checks import lanes, snapshots
from onecommit.doctor.vital_rows import ConnectionRow
from onecommit.doctor.vitals import read_vitals
from onecommit.embedded import EmbeddedPostgres
from onecommit.errors import SchemaError
from onecommit.schema.session import open_connection
from onecommit.worker import Worker, WorkerSettings

from tests.clusters import MAJORS, Cluster, Database, binaries
from tests.doctor.test_command import run
from tests.engine import Engine
from tests.logins import PASSWORD, Logins
from tests.pgbouncer import pgbouncer
from tests.proxy import Proxy
from tests.schema.provisioned import Provisioned, strict_store
from tests.stores import Store

pytestmark = pytest.mark.pg

AT_WORK = {
    "pooler",
    "notices",
    "clock_skew",
    "connections",
    "snapshots",
    "maintenance",
    "workers",
    "chapters",
    "lanes",
    "needs_operator",
}
LEADS = "update onecommit.leader set worker = 1, until = now() + interval '1 hour'"
LED = "update onecommit.leader set worker = 1, until = now() - interval '3 minutes'"


def lines(report: DoctorReport) -> list[str]:
    """All that is said, each with its severity and check."""
    return [
        f"{severity} {name}: {said.subject} {said.problem}"
        for severity, found in (
            ("finding", report.findings),
            ("warning", report.warnings),
            ("information", report.information),
        )
        for name, said in found
    ]


def look(store: Store) -> list[str]:
    report = examine(store.database.dsn)
    assert report.unseen_at_work == ()
    return lines(report)


def only(said: list[str], beginning: str) -> str:
    """The one line; it begins so."""
    assert len(said) == 1, said
    assert said[0].startswith(beginning), said
    return said[0]


def test_an_idle_store_has_nothing_to_say(store: Store):
    """Neither findings nor warnings nor information, and every check was asked."""
    report = examine(store.database.dsn)
    assert lines(report) == []
    assert set(report.checks) >= AT_WORK


def test_only_drift_is_looked_for_if_asked(store: Store, engine: Engine):
    """What goes on is left out, as for a pipeline that has to be told of drift alone."""
    engine.enqueue()
    assert only(look(store), "warning lanes: ")
    report = examine(store.database.dsn, drift_only=True)
    assert lines(report) == []
    assert not AT_WORK & set(report.checks)


# --- the way to the server


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("transaction", "warning pooler: connection goes through a pooler in transaction"),
        ("session", "information pooler: connection goes through a pooler in session mode"),
    ],
)
def test_a_pooler_is_named_with_its_mode(store: Store, mode: str, said: str):
    """By a notice that does not come back, or does."""
    with pgbouncer(store.database, mode=mode) as dsn:
        only(lines(examine(dsn)), said)


@pytest.mark.anyio
async def test_silence_on_a_direct_way_is_a_finding(store: Store):
    """Something between drops what the server sends by itself."""
    async with Proxy(store.database.dsn) as proxy:
        proxy.deaf = True
        report = await asyncio.to_thread(examine, proxy.dsn)
    only(lines(report), "finding notices: notices a notice that was sent over a direct connection")


# --- the server


def test_a_limit_that_is_nearly_reached_is_a_warning(store: Store):
    """Of the server, the database or the role: whichever leaves least."""
    limit = sql.SQL("alter database {} connection limit {}")
    name = sql.Identifier(store.database.name)
    # The observer, the doctor's two and those of tests before; superusers are let in all the same.
    store.observer.execute(limit.format(name, 1))
    try:
        only(look(store), "warning connections: connections 0 of 1 that this login may have")
    finally:
        store.observer.execute(limit.format(name, -1))


def test_workers_that_may_want_more_than_there_is_are_a_warning(store: Store, engine: Engine):
    """Each says how many it and its handlers may have; those that have ended want none."""
    engine.sql(LEADS)
    most = int(engine.value("show max_connections"))
    engine.register()
    engine.sql(
        "update onecommit.worker set info = info || jsonb_build_object('connections', %s)", most
    )
    assert look(store) == []
    engine.register()
    engine.sql(
        "update onecommit.worker set info = info || '{\"connections\": 1}' where worker = %s",
        engine.worker,
    )
    said = f"warning connections: connections live workers may want {most + 1} at a time"
    assert only(look(store), said).endswith(f"max_connections is {most}")
    engine.retire()
    assert look(store) == []


@pytest.mark.anyio
async def test_a_worker_says_how_many_connections_it_may_want(database: Database):
    """Those of its runtime and of its application's pool."""
    app = App(database.dsn)
    app.job(queue="some")(nothing)
    async with app, Worker(app, WorkerSettings(queues={"some": 3}, application_connections=7)):
        [worker] = await app.workers.list()
    assert worker.info["connections"] == 1 + 6 + 2 + 7


async def nothing(ctx: JobContext) -> None:
    """A job."""


def test_a_transaction_that_stays_open_is_a_warning(
    store: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """With its pid, its role and its age, and never with its query."""
    with engine.open("repeatable read"):
        engine.sql("select 'a secret' from onecommit.ring")
        assert look(store) == []
        monkeypatch.setattr(snapshots, "LONG", snapshots.LONG * 0)
        said = only(look(store), f"warning snapshots: pid {engine.pid} ")
    assert "idle in transaction, its transaction has been open for" in said
    assert "secret" not in said


def test_what_outlives_its_session_and_holds_vacuum_back_is_a_warning(
    holding: Database, monkeypatch: pytest.MonkeyPatch
):
    """A slot as soon as nobody uses it, a prepared transaction after a while."""
    slot = "warning snapshots: replication slot idle_slot is not in use, and holds vacuum back by "
    only(lines(examine(holding.dsn)), slot)
    monkeypatch.setattr(snapshots, "LONG", snapshots.LONG * 0)
    prepared, _ = said = lines(examine(holding.dsn))
    assert len(said) == 2
    assert prepared.startswith(
        "warning snapshots: prepared transaction of_a_bank holds vacuum back for "
    )


@pytest.fixture(params=MAJORS, ids=[f"pg{major}" for major in MAJORS])
def holding(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A server that allows such things, with one of each."""
    settings = {"wal_level": "logical", "max_prepared_transactions": "2"}
    with EmbeddedPostgres(bin_dir=binaries(request.param), settings=settings) as server:
        cluster = Cluster(major=request.param, server=server)
        with cluster.database(template=cluster.template) as database:
            with database.connect() as connection:
                connection.execute(
                    "select pg_create_logical_replication_slot('idle_slot', 'pgoutput')"
                )
                connection.execute("begin")
                connection.execute("create table t ()")
                connection.execute("prepare transaction 'of_a_bank'")
            yield database
            with database.connect() as connection:
                connection.execute("rollback prepared 'of_a_bank'")
                connection.execute("select pg_drop_replication_slot('idle_slot')")


WELL = ConnectionRow(
    is_standby=False,
    is_pooled=False,
    is_heard=True,
    queue_usage=0.0,
    max_connections=100,
    skew=timedelta(0),
    uncertainty=timedelta(0),
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"queue_usage": 0.2}, "warning notices: notices the server's queue of notices is 20% full"),
        ({"queue_usage": 0.5}, "finding notices: notices the server's queue of notices is 50% full"),
        ({"is_standby": True, "is_heard": None}, "information notices: notices this server is a standby"),
        ({"skew": timedelta(seconds=9)}, "warning clock_skew: clock the server's is 9.0 s ahead of this host's"),
        ({"skew": timedelta(seconds=-9)}, "warning clock_skew: clock the server's is 9.0 s behind this host's"),
        ({"skew": timedelta(seconds=9), "uncertainty": timedelta(seconds=8)}, None),
    ],
)  # fmt: skip
def test_what_a_server_at_hand_does_not_do_is_judged_by_its_numbers(
    store: Store, changes: dict[str, Any], said: str | None
):
    """A full queue takes gigabytes, a wrong clock another host: the verdict over their rows."""
    with store.database.connect() as connection:
        seen = read_vitals(
            connection, "onecommit", open_another=lambda: open_connection(store.database.dsn)
        )
    assert abs(seen.connection.skew) <= seen.connection.uncertainty + timedelta(seconds=1)
    report = examine(store.database.dsn, drift_only=True)
    judged = lines(with_vitals(report, replace(seen, connection=replace(WELL, **changes))))
    assert judged == [] if said is None else only(judged, said)


# --- maintenance and workers


def test_jobs_that_are_due_and_not_promoted_are_a_warning(store: Store, engine: Engine):
    """With who should have done it."""
    engine.enqueue_one(delay_us=3_600_000_000)
    assert look(store) == []
    engine.sql("update onecommit.scheduled set run_at = now() - interval '5 minutes'")
    said = only(look(store), "warning maintenance: scheduled jobs the first has been due for 5 min")
    assert said.endswith("nobody has led yet")


def test_workers_without_a_leader_are_a_warning(store: Store, engine: Engine):
    """As when none of their logins has the capability."""
    engine.register()
    only(
        look(store), "warning maintenance: leader 1 workers are registered, but nobody has led yet"
    )
    engine.sql(LED)
    only(
        look(store),
        "warning maintenance: leader 1 workers are registered, but nobody has led for 3 min",
    )
    engine.sql(LEADS)
    assert look(store) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("heartbeat_at = now() - interval '3 minutes'", "has been silent for 3 min and was not declared dead"),
        ("ended_at = now() - interval '1 hour'", "ended 60 min ago, and attempts of it are still open"),
        ("epoch = epoch + 1", "runs under epoch"),
    ],
)  # fmt: skip
def test_a_worker_that_is_no_longer_one_is_a_warning(
    store: Store, engine: Engine, change: str, problem: str
):
    """Silent, ended without a rescue, or of another epoch."""
    engine.register()
    engine.sql(LEADS)
    engine.sql(f"update onecommit.worker set {change}")
    assert problem in only(look(store), f"warning workers: worker {engine.worker} (w) ")


# --- the ring


def old_chapters(engine: Engine, *, full: bool = False) -> None:
    """The ring turns until the oldest chapter is overdue, and further until there is no slot left."""
    engine.sql(
        "update onecommit.ring set chapter_lifetime = '1us', retention = '10 hours', retention_floor = '10 hours'"
    )
    for _ in range(5 if full else 1):
        assert engine.tend()[0] == "rotate"
        engine.enqueue(queue="other")
    engine.sql("update onecommit.ring set retention = '0', retention_floor = '0'")
    engine.sql(
        "update onecommit.chapter set closed_at = closed_at - interval '1 hour' where closed_at is not null"
    )
    if not full:
        engine.sql("update onecommit.ring set chapter_lifetime = '1 hour'")
    engine.sql(
        "delete from onecommit.ready where lane in (select lane from onecommit.lane where queue = 'other')"
    )


@pytest.fixture
def ring(store: Store) -> Iterator[Store]:
    """With chapters that are emptied as files afterwards: one that is not is taken for full."""
    store.truncate_ring()
    store.observer.execute(LEADS)
    yield store
    store.truncate_ring()


def test_a_chapter_that_is_kept_by_its_attempts_is_a_warning(ring: Store, engine: Engine):
    """With the jobs whose attempts are open, by queue and by whether somebody has claimed them."""
    [attempt] = engine.take()
    old_chapters(engine)
    said = only(
        look(ring),
        "warning chapters: chapter 1 should have been reclaimed 60 min ago (2 of 6 slots",
    )
    assert f"1 attempts of queue q are claimed but not closed (jobs {attempt.job_id}, …)" in said
    engine.complete([attempt])
    only(look(ring), "warning chapters: chapter 1 should have been reclaimed 60 min ago")
    assert engine.tend() == ("reclaim", 1)
    assert look(ring) == []


def test_a_chapter_that_is_kept_by_a_lock_names_who_holds_it(ring: Store, engine: Engine):
    """A reader that stays in its transaction stops the truncation."""
    engine.complete(engine.take())
    old_chapters(engine)
    reader = ring.engine()
    with reader.open():
        reader.sql("select from onecommit.ready_1")
        assert engine.tend()[0] == "blocked"
        said = only(look(ring), "warning chapters: chapter 1 should have been reclaimed")
    assert f"pid {reader.pid} (postgres, idle in transaction" in said
    assert "holds locks on its tables" in said


def test_a_ring_without_a_slot_is_a_finding(ring: Store, engine: Engine):
    """The head grows from now on, so a pipeline has to stop."""
    engine.take()
    old_chapters(engine, full=True)
    said = look(ring)
    assert any(
        s.startswith("finding chapters: chapter 6 is due to be closed, but all 6 slots")
        for s in said
    ), said


# --- lanes


def test_jobs_without_a_worker_are_a_warning(store: Store, engine: Engine):
    """In a paused queue they are meant to wait."""
    engine.enqueue()
    said = only(look(store), "warning lanes: lane ")
    assert (
        "(queue q, priority 2) jobs wait in it, and no live worker serves the queue; never claimed"
        in said
    )
    engine.call("pause_queue", p_queue="q", p_actor="a", p_reason="r")
    assert "is paused, and jobs wait in it" in only(look(store), "information lanes: ")


def test_a_lane_that_stands_still_under_a_worker_is_a_warning(store: Store, engine: Engine):
    """Not as soon as something waits, but when nothing has been claimed for minutes."""
    engine.sql(LEADS)
    engine.take()
    engine.enqueue()
    assert look(store) == []
    engine.sql("update onecommit.claim set claimed_at = claimed_at - interval '10 minutes'")
    engine.sql("update onecommit.ready set created_at = created_at - interval '10 minutes'")
    assert "does not move: jobs wait in it, 1 live workers" in only(look(store), "warning lanes: ")


def test_what_moves_between_two_looks_is_not_stuck(
    store: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """A job that is claimed meanwhile was about to be; so was a lock that is given back."""
    engine.enqueue()
    assert only(look(store), "warning lanes: ")
    monkeypatch.setattr(vitals.time, "sleep", lambda _: engine.claim())
    engine.sql(LEADS)
    assert look(store) == []


def test_an_open_transaction_that_enqueued_is_named(
    store: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """Numbers are kept free for it; whoever may see its age is spared the warning while it is young."""
    writer = store.engine()
    engine.complete(engine.take())  # the queue has its lane
    engine.sql(LEADS)
    with writer.open():
        writer.enqueue()
        engine.enqueue()
        assert len(engine.claim().attempts) == 1
        assert look(store) == []
        monkeypatch.setattr(lanes, "STILL", lanes.STILL * 0)
        said = only(look(store), "warning lanes: ")
    assert "1 ranges of numbers below its frontier are missing" in said
    assert f"pid {writer.pid} (postgres, idle in transaction" in said


def test_what_waits_for_a_person_is_information(store: Store, engine: Engine):
    """Counted by queue."""
    engine.sql(LEADS)
    engine.finish(engine.take(2), "discarded")
    only(look(store), "information needs_operator: queue q has 2 dead letters, from 20")


# --- what a login may see


def test_a_store_of_another_release_says_what_it_does_not_have(database: Database):
    """That it lacks a routine is drift; that so much was not looked at is told beside it."""
    with database.connect() as connection:
        connection.execute("drop function onecommit.store_health")
    report = examine(database.dsn)
    only(lines(report), "finding routine_bodies: store_health() is missing")
    assert report.unseen_at_work == ("store_health: it is not installed",)


def test_nothing_is_waited_for_for_long(database: Database, monkeypatch: pytest.MonkeyPatch):
    """A table that somebody has locked: what is asked of it alone is left out, and who compares is told by whom."""
    monkeypatch.setattr(vitals, "PATIENCE", "2s")
    monkeypatch.setattr(catalog, "PATIENCE", "50ms")
    with database.connect() as other, other.transaction(), database.connect() as connection:
        other.execute("lock table onecommit.dead_letter")
        seen = read_vitals(
            connection, "onecommit", open_another=lambda: open_connection(database.dsn)
        )
        assert seen.unseen == (("dead_letter_counts", "it took longer than 2s"),)
        with pytest.raises(SchemaError, match=rf"by pid {other.info.backend_pid}\b"):
            examine(database.dsn)


def test_a_login_without_the_reader_capability_says_what_it_did_not_see(shared_logins: Logins):
    """The verdict on drift is whole, so it stays; with --strict too."""
    dsn = make_conninfo(
        shared_logins.database.dsn,
        user=shared_logins.role("work_dispatcher"),
        password=PASSWORD,
    )
    result = run("--json", ONECOMMIT_DSN=dsn)
    report = json.loads(result.stdout)
    assert (result.returncode, report["unseen"], report["warnings"]) == (0, [], [])
    assert "store_health" in report["unseen_at_work"][0]
    assert report["unseen_at_work"][0].endswith(": the login has no EXECUTE")


@pytest.fixture(scope="module")
def strict(postgres: Cluster) -> Iterator[Provisioned]:
    """A store in which no owner is a superuser."""
    with strict_store(postgres) as provisioned:
        yield provisioned


def test_hidden_sessions_are_counted_and_no_guess_is_made(strict: Provisioned):
    """A reader sees everything of the store; of other roles' sessions only as a member of pg_read_all_stats."""
    login = strict.login("reader")
    with strict.database.connect() as other:
        other.execute("begin")
        hidden = examine(login)
        assert hidden.unseen_at_work == ()
        only(lines(hidden), "information snapshots: sessions 2 of other roles are hidden")
        name = sql.Identifier(psycopg.conninfo.conninfo_to_dict(login)["user"])
        strict.admin.execute(sql.SQL("grant pg_read_all_stats to {}").format(name))
        try:
            assert lines(examine(login)) == []
        finally:
            strict.admin.execute(sql.SQL("revoke pg_read_all_stats from {}").format(name))


def test_the_budget_counts_sessions_that_its_owner_may_not_see(strict: Provisioned):
    """The bounded owner sees no other role's session whole; each takes a connection all the same."""
    count = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
    budget = "select usable - free from onecommit.connection_budget()"
    with psycopg.connect(strict.login("reader"), autocommit=True) as reader:
        [(counted,)] = reader.execute(budget).fetchall()
        [(there,)] = strict.admin.execute(count).fetchall()
    assert counted == there
