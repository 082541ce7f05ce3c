"""A worker's metrics, /livez and /readyz, asked as Prometheus and an orchestrator ask."""

import asyncio
import http.client
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from onecommit import schema
from onecommit.app.app import App
from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.app.work_invocation import WorkInvocation
from onecommit.domain.outcome import Discard, RetryAfter, Snooze
from onecommit.domain.token import FinalizationReceipt
from onecommit.domain.work import Safety
from onecommit.errors import EpochFenced, UsageError
from onecommit.telemetry.events import (
    HeartbeatStale,
    ListenerReady,
    LoopFailed,
    MetricsServed,
    StaleAttempt,
    WorkAttemptEnded,
    WorkerReplaced,
)
from onecommit.telemetry.metrics import METRICS
from onecommit.worker import Worker, monitor

from tests.clusters import Database
from tests.proxy import Proxy
from tests.strict import strict_database
from tests.worker.harness import Events, eventually, start_worker

pytestmark = pytest.mark.pg


@pytest.fixture
def database(postgres):
    """Nobody else's worker may lead here."""
    with strict_database(postgres) as fresh:
        yield fresh


class Probe:
    """Asks one worker over HTTP, from a thread of its own."""

    def __init__(self, worker: Worker) -> None:
        assert worker._monitor is not None
        self._port = worker._monitor.port

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)) as connection:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()

    async def get(self, path: str, **options: str) -> tuple[int, str, str]:
        return await asyncio.to_thread(lambda: self.ask(path, **options))

    async def reasons(self, path: str) -> list[tuple[str, str | None]]:
        """Check and code of each ailment."""
        status, _, body = await self.get(path)
        reasons = json.loads(body)["reasons"]
        assert (status == 200) is (reasons == [])
        return [(reason["check"], reason["code"]) for reason in reasons]

    async def values(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Each sample by its name and the values of its labels, in the order of their names."""
        status, _, text = await self.get("/metrics")
        assert status == 200, text
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = tuple(value for _, value in sorted(sample.labels.items()))
                found.setdefault(sample.name, {})[labels] = sample.value
        return found


@pytest.fixture
async def probe_of(worker_of) -> AsyncIterator[Any]:
    async def start(**settings: Any) -> Probe:
        return Probe(await worker_of(metrics_port=0, **settings))

    return start


# --- metrics


async def test_jobs_are_counted_by_how_they_ended(app: App, probe_of):
    """Of each kind how long its handlers ran, and of each failure the code."""
    ends: dict[str, Any] = {
        "none": None,
        "retry": RetryAfter(timedelta(hours=1)),
        "no": Discard("no"),
        "snooze": Snooze(timedelta(hours=1)),
    }

    @app.job(queue="email")
    async def send(ctx: JobContext, end: str) -> Any:
        if end == "raise":
            raise ValueError("secret")
        return ends[end]

    @app.job(queue="reports")
    def report(ctx: JobContext) -> None: ...

    await send.enqueue_many([{"end": end} for end in (*ends, "none", "raise")])
    await report.enqueue()
    probe = await probe_of()
    values = await settled(probe, "onecommit_handler_seconds_count", total=7)
    ended = values["onecommit_attempts_ended_total"]
    assert {outcome: count for (outcome,), count in ended.items() if count} == {
        "completed": 3,
        "retried": 2,
        "exhausted": 1,
        "snoozed": 1,
    }
    assert values["onecommit_handler_seconds_count"] == {("send",): 6, ("report",): 1}
    assert values["onecommit_attempts_claimed_total"] == {("email",): 6, ("reports",): 1}
    assert values["onecommit_pickup_seconds_count"] == {("email",): 6, ("reports",): 1}
    assert values["onecommit_attempts_failed_total"] == {("handler_error", "send"): 1}
    assert sum(values["onecommit_completer_batch_attempts_sum"].values()) == 7
    assert values["onecommit_slots"] == {("email",): 10, ("reports",): 10}


async def settled(probe: Probe, metric: str, *, total: int) -> dict[str, Any]:
    """The values once a metric has come to a total and every end is recorded."""
    values: dict[str, Any] = {}

    async def there() -> bool:
        values.update(await probe.values())
        recorded = sum(values["onecommit_attempts_ended_total"].values())
        return sum(values.get(metric, {}).values()) == total == recorded

    await eventually(there, what=f"{metric} comes to {total}")
    return values


async def test_what_runs_and_what_waits_is_measured_while_it_does(app: App, probe_of):
    go, begun = asyncio.Event(), asyncio.Semaphore(0)

    @app.job()
    async def work(ctx: JobContext) -> None:
        begun.release()
        await go.wait()

    await work.enqueue_many([{}] * 15)
    probe = await probe_of()
    for _ in range(10):
        async with asyncio.timeout(30):
            await begun.acquire()
    values = await probe.values()
    assert values["onecommit_attempts_running"] == {("default",): 10}
    assert values["onecommit_handler_seconds_count"] == {("work",): 0}
    go.set()
    await settled(probe, "onecommit_handler_seconds_count", total=15)


async def test_the_evidence_about_caller_owned_attempts_is_counted(app: App, database, probe_of):
    """A receipt with its commit, a receipt without one, no receipt at all."""

    @app.caller_owned_job(max_attempts=1)
    async def settle(ctx: CallerOwnedJobContext, how: str) -> FinalizationReceipt:
        import psycopg

        async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
            receipt = await ctx.complete_in_tx(connection)
            if how == "rolls back":
                await connection.rollback()
        return receipt if how != "returns nothing" else None  # type: ignore[return-value]

    await settle.enqueue_many([{"how": how} for how in ("commits", "commits", "rolls back")])
    probe = await probe_of()
    values = await settled(probe, "onecommit_reconciler_decisions_total", total=3)
    decided = values["onecommit_reconciler_decisions_total"]
    assert {evidence: n for (evidence,), n in decided.items() if n} == {
        "completed": 2,
        "protocol_error": 1,
    }
    assert values["onecommit_attempts_ended_total"]["completed",] == 2
    assert values["onecommit_attempts_ended_total"]["exhausted",] == 1


async def test_work_is_counted_by_safety_and_never_by_name(app: App, events: Events, probe_of):
    """An application's own code and an exception's class are `other`; nothing says whose Work it is."""
    charge = app.work(
        "charge", version="1", payload=dict, result=str, safety=Safety.MANUAL_RESOLUTION
    )

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        if payload["fails"]:
            raise LookupError("secret")
        return "paid"

    probe = await probe_of()
    for number, fails in enumerate((False, True)):
        await charge.accept(
            {"fails": fails},
            scope="tenant-1",
            command_id=f"secret-c{number}",
            idempotency_key=f"secret-k{number}",
        )
    await events.wait_for(WorkAttemptEnded, count=2)
    values = await probe.values()
    assert values["onecommit_work_attempts_total"] == {
        ("none", "completed", "manual_resolution", "succeeded"): 1,
        ("ASDUR106", "completed", "manual_resolution", "exception"): 1,
    }
    suspended = values["onecommit_work_suspended_total"]
    assert {labels: n for labels, n in suspended.items() if n} == {
        ("ASDUR106", "manual_resolution"): 1
    }
    assert values["onecommit_work_permits_total"]["granted",] == 2
    assert values["onecommit_work_admissions_total"]["admitted",] == 2
    assert values["onecommit_work_slots"] == {("charge",): 5}
    _, _, text = await probe.get("/metrics")
    assert "secret" not in text
    assert "tenant-1" not in text
    assert "LookupError" not in text


async def test_a_renewal_is_counted_with_its_answer(app: App, probe_of):
    from tests.worker.test_work import QUICK

    go = asyncio.Event()
    charge = app.work(
        "slow", version="1", payload=dict, result=str, safety=Safety.IDEMPOTENT, retry=QUICK
    )

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        await go.wait()
        return "paid"

    await charge.accept({}, scope="s", command_id="c", idempotency_key="k")
    probe = await probe_of()

    async def renewed() -> bool:
        return (await probe.values())["onecommit_work_renewals_total"]["renewed",] >= 1

    await eventually(renewed, what="a renewal is counted")
    assert (await probe.values())["onecommit_work_running"] == {("slow",): 1}
    go.set()


async def test_a_stale_attempt_is_counted(app: App, events: Events, probe_of, database):
    """Somebody else has closed the attempt before its end is recorded."""
    go, begun = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        begun.set()
        await go.wait()

    job = await work.enqueue()
    probe = await probe_of()
    async with asyncio.timeout(30):
        await begun.wait()
    with database.connect() as connection:
        connection.execute(
            "select onecommit.close_attempts(array[r.chapter], array[r.lane], array[r.seq],"
            " array[r.job_id], array[1::bigint], array['rescued'], array[0::bigint], array['test'],"
            " array[null], false) from onecommit.ready r where r.job_id = %s",
            (job.job_id,),
        )
    go.set()
    await events.wait_for(StaleAttempt)
    values = await probe.values()
    assert values["onecommit_attempts_stale_total"]["completed",] == 1
    assert values["onecommit_events_total"]["attempt.stale",] == 1
    assert values["onecommit_events_total"]["heartbeat.stale",] == 0, "it is there before it rises"


async def test_what_the_leader_does_for_others_is_counted(app: App, probe_of, database):
    """An attempt of a dead worker is rescued, and the retry that follows is made ready."""

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    await work.enqueue()
    with database.connect() as connection:
        connection.execute(
            "with w as (select onecommit.register_worker('dead', %s, active_epoch) as id, active_epoch as epoch"
            " from onecommit.store_status()) select c.* from w,"
            " onecommit.claim_jobs(w.id, 1, 'default', 1, null, null, w.epoch) c",
            ('{"queues": ["default"], "capabilities": ["caller_owned_v1"]}',),
        )
        connection.execute("update onecommit.worker set ended_at = clock_timestamp()")
    values = await settled(await probe_of(), "onecommit_attempts_ended_total", total=2)
    ended = values["onecommit_attempts_ended_total"]
    assert {outcome: count for (outcome,), count in ended.items() if count} == {
        "rescued": 1,
        "completed": 1,
    }
    assert values["onecommit_pickup_seconds_count"] == {("default",): 0}, "a second attempt"
    assert values["onecommit_leader"] == {(): 1}


async def test_every_family_of_the_table_is_exported_and_no_other(app: App, probe_of):
    """What the table promises comes out, once there is something to count."""

    @app.job()
    async def work(ctx: JobContext) -> None: ...

    charge = app.work("charge", version="1", payload=dict, result=str, safety=Safety.IDEMPOTENT)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    probe = await probe_of()
    _, _, text = await probe.get("/metrics")
    families = {
        (family.name if family.type != "counter" else f"{family.name}_total", family.type)
        for family in text_string_to_metric_families(text)
        if family.name.startswith("onecommit_") and not family.name.endswith("_created")
    }
    assert families == {(metric.name, metric.kind.value) for metric in METRICS}


async def test_the_form_of_the_exposition_is_chosen_by_the_client(app: App, probe_of):
    probe = await probe_of()
    _, plain, _ = await probe.get("/metrics")
    _, open_metrics, text = await probe.get(
        "/metrics", Accept="application/openmetrics-text; version=1.0.0"
    )
    assert plain.startswith("text/plain")
    assert open_metrics.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


async def test_a_path_that_is_not_there_is_said_so(probe_of):
    probe = await probe_of()
    status, _, text = await probe.get("/debug")
    assert (status, text) == (404, "there are /metrics /livez /readyz\n")
    assert (await probe.get("/livez", method="POST"))[0] == 501
    assert (await probe.get("/livez", method="HEAD"))[::2] == (200, "")


async def test_an_error_while_scraping_is_reported_and_ends_nothing(
    app: App, events: Events, probe_of, monkeypatch
):
    probe = await probe_of()
    with monkeypatch.context() as patch:
        patch.setattr(monitor, "readings_of", lambda *_: 1 / 0)
        status, _, text = await probe.get("/metrics")
    assert (status, text) == (500, "an error was logged\n")
    assert (await events.wait_for(LoopFailed)).failure == "ZeroDivisionError"
    assert (await probe.get("/metrics"))[0] == 200


# --- health


async def test_a_worker_that_works_is_alive_and_ready_until_it_drains(app: App, events, probe_of):
    go, begun = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: JobContext) -> None:
        begun.set()
        await go.wait()

    await work.enqueue()
    worker = await start_worker(app, events, metrics_port=0)
    probe = Probe(worker)
    async with asyncio.timeout(30):
        await begun.wait()
    assert await probe.reasons("/livez") == await probe.reasons("/readyz") == []
    assert (await probe.values())["onecommit_ready"] == {(): 1}
    worker.request_stop()
    assert await probe.reasons("/readyz") == [("stop", None)]
    assert await probe.reasons("/livez") == []
    assert (await probe.values())["onecommit_ready"] == {(): 0}
    go.set()
    assert await worker.run() == 0
    with pytest.raises(ConnectionRefusedError):
        await probe.get("/livez")


async def test_a_database_that_does_not_answer_is_named_and_then_the_stale_heartbeat(
    app: App, events: Events
):
    """/livez stays well: a new process would not find the database either."""
    settings = app.settings
    async with (
        Proxy(settings.dsn) as proxy,
        App(proxy.dsn, store_id=settings.store_id, epoch=settings.epoch) as proxied,
    ):
        worker = await start_worker(
            proxied, events, metrics_port=0, heartbeat_interval=0.2, rescue_window=2.0
        )
        probe = Probe(worker)
        await events.wait_for(ListenerReady)
        proxy.refuse()

        async def unanswered() -> bool:
            return await probe.reasons("/readyz") == [("database", "ASDUR103")]

        await eventually(unanswered, what="the database is named")
        await events.wait_for(HeartbeatStale)
        assert await probe.reasons("/readyz") == [
            ("heartbeat", "ASDUR404"),
            ("database", "ASDUR103"),
        ]
        assert await probe.reasons("/livez") == []
        _, _, body = await probe.get("/readyz")
        assert settings.dsn.partition("@")[2] not in body
        proxy.accept()

        async def ready() -> bool:
            return await probe.reasons("/readyz") == []

        await eventually(ready, what="the worker is ready again")
        values = await probe.values()
        assert values["onecommit_events_total"]["heartbeat.stale",] == 1
        await worker.stop()


async def test_a_call_that_is_being_repeated_is_a_reason_before_the_next_heartbeat(
    app: App, events: Events
):
    """A claim is not answered; the heartbeat is not due yet and knows nothing of it."""
    settings = app.settings
    async with (
        Proxy(settings.dsn) as proxy,
        App(proxy.dsn, store_id=settings.store_id, epoch=settings.epoch) as proxied,
    ):
        worker = await start_worker(
            proxied, events, metrics_port=0, heartbeat_interval=3600.0, rescue_window=20_000.0
        )
        probe = Probe(worker)
        await events.wait_for(ListenerReady)
        heartbeat = worker._machinery.heartbeat
        await eventually(lambda: heartbeat._due > 0, what="the first heartbeat has arrived")
        proxy.refuse()
        worker._machinery.wake(None)

        async def unanswered() -> bool:
            return await probe.reasons("/readyz") == [("database", "ASDUR103")]

        await eventually(unanswered, what="the database is named")
        assert heartbeat.failures == 0
        proxy.accept()

        async def ready() -> bool:
            return await probe.reasons("/readyz") == []

        await eventually(ready, what="the worker is ready again")
        await worker.stop()


async def test_a_worker_that_was_declared_dead_is_not_ready_until_it_has_registered_anew(
    app: App, events: Events, worker_of, database: Database
):
    """Registering waits for a lock that the test holds; heartbeats do not."""
    worker = await worker_of(metrics_port=0, heartbeat_interval=0.1, rescue_window=10.0)
    probe = Probe(worker)
    with database.connect() as connection:
        connection.execute(
            "create function held() returns trigger language plpgsql as"
            " $$ begin perform pg_advisory_xact_lock(1); return new; end $$;"
            " create trigger held before insert on onecommit.worker for each row execute function held();"
            " select pg_advisory_lock(1)"
        )
        connection.execute("update onecommit.worker set ended_at = clock_timestamp()")

        async def lost() -> bool:
            return await probe.reasons("/readyz") == [("worker", "ASDUR405")]

        await eventually(lost, what="the lost incarnation is named")
        assert events.of(WorkerReplaced) == []
        connection.execute("select pg_advisory_unlock(1)")
    await events.wait_for(WorkerReplaced)
    assert await probe.reasons("/readyz") == []


async def test_a_blocked_event_loop_is_dead_although_its_process_answers(
    app: App, events: Events, worker_of
):
    """The handler does not yield, the probes have a thread of their own."""
    begun, go = threading.Event(), threading.Event()

    @app.job()
    async def stuck(ctx: JobContext) -> None:
        begun.set()
        go.wait(60)

    probe = Probe(await worker_of(metrics_port=0, heartbeat_interval=0.2, rescue_window=1.0))
    found: list[Any] = []

    def look() -> None:
        assert begun.wait(30)
        for _ in range(3000):
            status, _, body = probe.ask("/livez")
            if status == 503:
                found.append(json.loads(body)["reasons"][0])
                break
            go.wait(0.01)
        go.set()

    thread = threading.Thread(target=look)
    thread.start()
    await stuck.enqueue()
    await asyncio.to_thread(thread.join, 60)
    assert found[0]["check"] == "loop"
    assert found[0]["reason"].startswith("the event loop has not run for")


async def test_a_rotated_epoch_is_named(app: App, events: Events, database: Database):
    go, begun = threading.Event(), threading.Event()

    @app.job()
    def work(ctx: JobContext) -> None:
        begun.set()
        go.wait(60)

    await work.enqueue()
    worker = await start_worker(
        app, events, metrics_port=0, heartbeat_interval=0.1, rescue_window=5.0
    )
    assert await asyncio.to_thread(begun.wait, 30)
    settings = app.settings
    schema.rotate_epoch(
        database.migrator_dsn,
        store_id=settings.store_id,
        expected=settings.epoch,
        actor="me",
        reason="test",
    )
    await worker.stop_requested()
    assert [(each.check, each.code) for each in worker.health.ready()] == [
        ("store", EpochFenced.code)
    ]
    go.set()
    with pytest.raises(EpochFenced):
        await worker.run()


# --- bad input


async def test_a_port_in_use_is_refused_before_anything_is_asked_of_the_store(
    app: App, events: Events, database: Database
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of '127.0.0.1': Address already in use"):
            await start_worker(app, events, metrics_port=port)
    with database.connect() as connection:
        assert connection.execute("select count(*) from onecommit.worker").fetchone() == (0,)
    assert events.seen == []


async def test_without_the_client_library_the_remedy_is_its_extra(
    app: App, events: Events, monkeypatch
):
    monkeypatch.setitem(sys.modules, "onecommit.telemetry.prometheus", None)
    monkeypatch.delitem(sys.modules, "onecommit.telemetry.prometheus")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(UsageError, match=r"pip install 'onecommit\[metrics\]'"):
        await start_worker(app, events, metrics_port=0)


async def test_a_start_that_fails_gives_the_port_back(app: App, events: Events):
    settings = app.settings
    other = App(settings.dsn, store_id=settings.store_id, epoch=1)
    with pytest.raises(EpochFenced):
        await start_worker(other, events, metrics_port=0)
    [served] = events.of(MetricsServed)
    with socket.create_server(("127.0.0.1", served.port)):
        pass


async def test_without_a_port_nothing_is_measured(app: App, worker_of):
    @app.job()
    async def work(ctx: JobContext) -> None: ...

    worker = await worker_of()
    station = worker._machinery.stations["default"]
    assert station._kinds["work"].call is app.registry.get("work").handler
    assert worker._machinery.completer.on_recorded is None
    assert worker._machinery.dispatchers["default"].on_claimed is None
    assert worker.health.ready() == worker.health.alive() == []
