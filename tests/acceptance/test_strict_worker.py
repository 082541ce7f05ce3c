"""Under the strict profile the whole product runs: each process logs in as what it does, and as nothing more."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from onecommit import schema

from tests.acceptance import strict_application
from tests.chaos.processes import ROOT, wait_until
from tests.clusters import Cluster
from tests.schema.provisioned import Provisioned, strict_store

pytestmark = pytest.mark.pg

JOBS = "select coalesce(array_agg(outcome::text order by outcome), '{}') from onecommit.completion"
WORK = "select coalesce(max(state), '') from onecommit.work"
WORKER = ("executor", "maintenance", "work_dispatcher", "work_runtime")


@pytest.fixture
def strict(postgres: Cluster) -> Iterator[Provisioned]:
    with strict_store(postgres) as store:
        store.admin.execute("create table ledger (n integer primary key, login name not null)")
        store.admin.execute(f"grant insert on ledger to {store.role('finalizer')}")
        yield store


@pytest.fixture
def env(strict: Provisioned) -> dict[str, str]:
    report = schema.status(strict.migrator_dsn)
    return os.environ | {
        "ONECOMMIT_STORE_ID": str(report.store_id),
        "ONECOMMIT_EPOCH": str(report.active_epoch),
        "FINALIZER_DSN": strict.login("finalizer"),
    }


def in_process(env: dict[str, str], dsn: str, script: str) -> None:
    """A short-lived process of the application, as this login."""
    text = f"from tests.acceptance.strict_application import app, note, settle, work\n{script}\n"
    subprocess.run(
        [sys.executable, "-c", text], env=env | {"ONECOMMIT_DSN": dsn}, cwd=ROOT, check=True
    )


def seen(strict: Provisioned, query: str) -> Any:
    return strict.admin.execute(query).fetchone()[0]


def test_jobs_and_work_run_with_a_login_for_each_part(strict: Provisioned, env: dict[str, str]):
    """Producer, acceptor, worker and finalizer; a failed attempt is retried, and the row commits with its completion."""
    assert strict_application.app is not None
    operator = strict.login("operator")
    worker = subprocess.Popen(
        [sys.executable, "-m", "onecommit", "worker", "tests.acceptance.strict_application:app"],
        env=env | {"ONECOMMIT_DSN": strict.login(*WORKER)},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )
    try:
        in_process(
            env,
            strict.login("producer"),
            "settle.sync.enqueue(n=7)\nnote.sync.enqueue(n=1)\nnote.sync.enqueue(n=2)",
        )
        in_process(
            env,
            strict.login("work_acceptor"),
            "work.sync.accept({'cents': 5}, scope='s', command_id='c', idempotency_key='k')",
        )
        wait_until(lambda: seen(strict, WORK) == "succeeded", what="the Work is done")
        wait_until(
            lambda: seen(strict, JOBS).count("completed") == 3, what="the three jobs are done"
        )
    finally:
        worker.terminate()
        code = worker.wait(timeout=60)
    assert code == 0
    assert sorted(seen(strict, JOBS)) == ["completed", "completed", "completed", "retried"]
    [row] = strict.admin.execute("select n, login from ledger").fetchall()
    assert row[0] == 7
    with psycopg.connect(operator, autocommit=True) as connection:
        connection.execute(
            "select onecommit.pause_queue('plain', 'ada', 'a look', %s)", (env["ONECOMMIT_EPOCH"],)
        )
    assert seen(strict, "select paused from onecommit.queue where queue = 'plain'") is True
