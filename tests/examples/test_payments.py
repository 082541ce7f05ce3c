"""The payments example keeps what its tutorial says, against a real server and a provider that misbehaves."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

import pytest

from tests.clusters import Cluster
from tests.examples.payments_service import (
    FOLDER,
    SECRETS,
    TOKENS,
    Service,
    running,
    served_by_uvicorn,
)
from tests.strict import strict_database

pytestmark = pytest.mark.pg

DECLINED, BROKEN, BUSY, SILENT, UNSURE, LOST, REFUSED = 402, 500, 503, 504, 598, 599, 400


@pytest.fixture(scope="module")
def shared(postgres: Cluster) -> Iterator[Service]:
    """One service for the tests of this file: each has a shop of its own."""
    with strict_database(postgres) as database, running(database) as service:
        yield service


@pytest.fixture
def service(shared: Service) -> Service:
    return replace(shared, shop=f"shop-{uuid4().hex[:8]}")


# --- one command


def test_it_runs_on_a_server_of_its_own():
    """One command, nothing set: it starts PostgreSQL and a provider, tells its story and checks it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ONECOMMIT_", "PG"))}
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "payments"],
        cwd=FOLDER,
        env=clean,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("ok: "), ended.stdout


@pytest.mark.parametrize(
    ("dsn", "port", "problem"),
    [
        (
            "postgresql://nobody@127.0.0.1:1/nothing",
            0,
            "Payments did not start: see the lines above",
        ),
        (None, None, "port {} of Fake payment provider is taken: choose another one"),
    ],
    ids=["no database", "no port"],
)
def test_what_it_cannot_do_is_its_last_line(dsn: str | None, port: int | None, problem: str):
    """And no traceback of ours after it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1] if port is None else port
        command = [sys.executable, "-W", "error", "-m", "payments"]
        ended = subprocess.run(
            [*command, "--serve", "--port", "0", "--provider-port", str(number)],
            cwd=FOLDER,
            env=os.environ | ({"ONECOMMIT_DSN": dsn} if dsn else {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == f"error: {problem.format(number)}"


# --- webhooks


def test_a_repeated_webhook_is_answered_with_the_original(service: Service):
    """The same event, and another event about the same order: one row, one Work, one charge."""
    answers = [service.order("o-1", 1200), service.order("o-1", 1200)]
    answers.append(service.order("o-1", 1200, event="evt-forwarded"))
    assert [answer.status_code for answer in answers] == [202, 200, 200]
    assert answers[0].json() == answers[1].json() == answers[2].json()
    assert answers[0].json()["command_id"] == "evt-o-1"
    assert service.until_state("orders", "o-1", "succeeded")["state"] == "paid"
    assert (service.count("shop_order"), service.count("onecommit.work")) == (1, 1)
    assert service.booked("charges", "order", "o-1") == 1


def test_a_contradicting_webhook_is_a_conflict_and_changes_nothing(service: Service):
    """Another amount, another order under the same event, or the identities of two orders: 409."""
    service.order("o-2", 1200)
    service.order("o-3", 900)
    conflicts = [
        service.order("o-2", 1),
        service.order("o-4", 1200, event="evt-o-2"),
        service.order("o-3", 900, event="evt-o-2"),
    ]
    assert [(c.status_code, c.json()["code"]) for c in conflicts] == [(409, "ASDUR102")] * 3
    assert (service.count("shop_order"), service.count("onecommit.work")) == (2, 2)
    assert service.shown("orders", "o-2")["cents"] == 1200


def test_an_order_and_a_payout_may_have_the_same_number(service: Service):
    """They share a scope, so each identity says what it is about."""
    assert service.order("n-1", 1200, event="evt-a").status_code == 202
    assert service.send("payouts", id="evt-b", payout="n-1", cents=1200).status_code == 202


def test_what_is_not_signed_or_not_an_event_is_refused(service: Service):
    """Neither a row nor Work comes of it."""
    event = {"id": "evt-1", "order": "o-5", "cents": 1200}
    assert service.send("orders", secret="of somebody else", **event).status_code == 401
    assert service.send("orders", **event | {"cents": 0}).status_code == 422
    assert service.send("orders", **event | {"id": "two words"}).status_code == 422
    assert (service.count("shop_order"), service.count("onecommit.work")) == (0, 0)


def test_row_and_work_are_one_commit(service: Service):
    """If the order cannot be written its charge is not accepted either."""
    with service.database.connect() as connection:
        connection.execute("alter table shop_order add constraint odd check (number <> 'odd')")
        assert service.order("odd", 1200).status_code == 500
        assert (service.count("shop_order"), service.count("onecommit.work")) == (0, 0)
        connection.execute("alter table shop_order drop constraint odd")
    assert service.order("odd", 1200).status_code == 202


def test_a_disabled_shop_is_gone(service: Service):
    """What was accepted before it was disabled stays; nothing new is accepted."""
    service.order("o-6", 1200)
    service.until_state("orders", "o-6", "succeeded")
    service.value(
        "select outcome from onecommit.disable_scope(%s, 'close', 1, 'ada', 'closed',"
        " (select active_epoch from onecommit.store_status()))",
        service.shop,
    )
    assert service.order("o-7", 1200).status_code == 410
    assert service.count("shop_order") == 1


# --- a provider that misbehaves


@pytest.mark.parametrize(
    ("cents", "state"), [(DECLINED, "declined"), (BROKEN, "paid"), (BUSY, "paid")]
)
def test_a_charge_needs_nobody(service: Service, cents: int, state: str):
    """A decline is an answer; after an error, or where nothing was done, the charge is sent again."""
    service.order(f"o-{cents}", cents)
    assert service.until_state("orders", f"o-{cents}", "succeeded")["state"] == state
    assert service.booked("charges", "order", f"o-{cents}") == 1
    assert service.waiting() == []


def test_a_charge_without_an_answer_waits_and_is_sent_again_with_its_key(service: Service):
    """It was booked; sent again by an operator it is still booked once, and a second click does nothing."""
    service.order("o-silent", SILENT)
    work = service.until_waiting()
    assert work["state"] == "suspended_ambiguous_external_outcome"
    assert (work["action"], work["unresolved"]) == ("retry_safe", 1)
    assert "send it again" in work["why"]
    clicks = [service.command("ada", work, "retry", id="click-1") for _ in range(2)]
    assert [c.json()["outcome"] for c in clicks] == ["released", "duplicate"]
    assert service.until_state("orders", "o-silent", "succeeded")["state"] == "paid"
    assert service.booked("charges", "order", "o-silent") == 1
    detail = service.ask("viv", "GET", f"/operators/work/{work['work_id']}").json()
    assert [permit["outcome"] for permit in detail["permits"]] == ["ambiguous", "known_succeeded"]
    said = [(e["event"], e["actor"]) for e in detail["events"] if e["event"] == "retry_authorized"]
    assert said == [("retry_authorized", "ada")]
    assert "provider_silent" in {event["application_code"] for event in detail["events"]}


def test_a_refused_charge_is_no_proof_that_nothing_happened(service: Service):
    """It waits for an operator, who cancels it and says that there is no charge."""
    service.order("o-refused", REFUSED)
    work = service.until_waiting()
    assert service.command("ada", work, "cancel").json()["outcome"] == "suspended"
    (work,) = service.waiting()
    assert work["action"] == "resolve"
    assert service.command("ada", work, "resolve").json()["state"] == "canceled_before_effect"
    assert service.shown("orders", "o-refused")["state"] == "accepted"


def test_a_canceled_charge_that_was_booked_after_all(service: Service):
    """The operator finds the charge and says so; the order is paid."""
    service.order("o-canceled", SILENT)
    work = service.until_waiting()
    service.command("ada", work, "cancel")
    (work,) = service.waiting()
    found = {"paid": True, "reference": "ch-found"}
    resolved = service.command("ada", work, "resolve", charged=found).json()
    assert resolved["state"] == "succeeded_after_cancel_requested"
    order = service.shown("orders", "o-canceled")
    assert (order["state"], order["reference"]) == ("paid", "ch-found")


@pytest.mark.parametrize("cents", [SILENT, BROKEN])
def test_a_payout_of_unknown_outcome_is_looked_up_and_not_sent_again(service: Service, cents: int):
    """It was made: the job finds it, and only one transfer is booked."""
    service.payout("p-1", cents)
    work = service.until_waiting()
    assert (work["state"], work["action"]) == ("suspended_reconciliation_required", "reconcile")
    assert service.command("ada", work, "retry").json()["code"] == "ASDUR117"
    service.reconcile()
    assert service.shown("payouts", "p-1")["work_state"] == "succeeded"
    assert service.shown("payouts", "p-1")["state"] == "paid"
    assert service.booked("payouts", "shop", service.shop) == 1


def test_a_payout_that_was_not_made_is_sent_again(service: Service):
    """The look-up proves that there is no transfer; only then is there another attempt."""
    service.payout("p-2", LOST)
    service.until_waiting()
    assert service.booked("payouts", "shop", service.shop) == 0
    service.reconcile()
    assert service.until_state("payouts", "p-2", "succeeded")["state"] == "paid"
    assert service.booked("payouts", "shop", service.shop) == 1


def test_a_provider_that_cannot_say_changes_nothing(service: Service):
    """The payout goes on waiting, and the next run finds it."""
    service.payout("p-3", UNSURE)
    work = service.until_waiting()
    service.reconcile()
    assert service.waiting() == [work]
    done = service.command("ada", work, "reconcile").json()
    assert (done["outcome"], done["state"]) == ("recorded", "succeeded")
    assert service.booked("payouts", "shop", service.shop) == 1


def test_a_provider_that_cannot_be_reached_has_done_nothing(postgres: Cluster):
    """A charge is tried again by itself; a transfer waits, since its executor is not asked for proof."""
    with (
        closed_port() as url,
        strict_database(postgres) as database,
        served_by_uvicorn(database, provider_url=url) as service,
    ):
        accepted = service.order("o-1", 1200).json()
        permits = "select array_agg(outcome order by attempt) from onecommit.work_permits(%s)"
        work_id = accepted["work_id"]
        service.until(lambda: len(service.value(permits, work_id) or []) >= 2)
        assert service.value(permits, work_id)[0] == "proven_no_effect"
        service.payout("p-1", 1200)
        work = service.until_waiting()
        assert service.command("ada", work, "reconcile").json()["outcome"] == "recorded"
        assert service.waiting() == [work]
        code, said = service.stop(signal.SIGTERM)
        assert "Application shutdown complete" in said, said
        assert code in (0, -signal.SIGTERM)  # uvicorn ends by the signal that it was given
        assert service.value("select count(*) from onecommit.worker where ended_at is null") == 0


@contextmanager
def closed_port() -> Iterator[str]:
    """The URL of a port that is taken and that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("name", ["PAYMENTS_TOKENS", "PAYMENTS_WEBHOOK_SECRET"])
def test_without_its_secrets_it_does_not_start(name: str):
    """It says what to set, before it opens anything."""
    env = os.environ | SECRETS | {"PAYMENTS_PROVIDER_URL": "http://127.0.0.1:9"}
    del env[name]
    ended = subprocess.run(
        [sys.executable, "-m", "uvicorn", "--factory", "payments.service:create", "--port", "0"],
        cwd=FOLDER,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert f"Set {name}." in ended.stderr


# --- operators


def test_operators_are_asked_who_they_are_and_what_they_may(service: Service):
    """Without a token 401; who may only look gets 403 for every command, and nothing moves."""
    service.order("o-8", SILENT)
    work = service.until_waiting()
    for method, path in [
        ("GET", "/operators/work"),
        ("GET", f"/operators/work/{work['work_id']}"),
        ("GET", f"/shops/{service.shop}/orders/o-8"),
        ("POST", "/operators/reconciliations"),
    ]:
        assert service.ask(None, method, path).status_code == 401
    assert service.ask("viv", "GET", "/operators/work").status_code == 200
    for name in ("retry", "reconcile", "cancel", "resolve"):
        assert service.command(None, work, name).status_code == 401
        assert service.command("viv", work, name).status_code == 403
    assert service.waiting() == [work]
    assert service.command("ada", work, "retry").status_code == 200


def test_a_command_about_work_that_has_moved_is_refused(service: Service):
    """The operator looks again before deciding."""
    service.order("o-9", SILENT)
    work = service.until_waiting()
    stale = service.command("ada", work | {"revision": work["revision"] - 1}, "retry")
    assert (stale.status_code, stale.json()["code"]) == (409, "ASDUR112")
    missing = service.command("ada", work | {"work_id": 10**9}, "cancel")
    assert (missing.status_code, missing.json()["code"]) == (404, "ASDUR111")
    assert service.waiting() == [work]


# --- the process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_worker_finish_and_no_secret_is_said(
    postgres: Cluster, number: signal.Signals
):
    """The worker has ended by the time that the process has, and its lines hold no secret and no payload."""
    with strict_database(postgres) as database, running(database) as service:
        service.order("o-secret-number", SILENT)
        service.until_waiting()
        code, said = service.stop(number)
        assert code == 0, said
        assert service.value("select count(*) from onecommit.worker where ended_at is null") == 0
        assert "work.suspended" in said
        secrets = [*TOKENS.values(), SECRETS["PAYMENTS_WEBHOOK_SECRET"], "o-secret-number"]
        assert [secret for secret in secrets if secret in said] == []


def test_the_process_ends_when_the_epoch_was_rotated(postgres: Cluster):
    """After a restore or a promotion nothing of an old process may go on."""
    with strict_database(postgres) as database, running(database) as service:
        service.order("o-1", 1200)
        service.until_state("orders", "o-1", "succeeded")
        with database.connect() as connection:
            connection.execute(
                "select onecommit.rotate_epoch(store_id, active_epoch, active_epoch + 1, 'ada', 'restored')"
                " from onecommit.store_status()"
            )
        _, said = service.process.communicate(timeout=60)
        assert re.search(r"worker\.fenced", said), said
