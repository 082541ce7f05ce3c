"""Under the strict profile the whole product runs: each process logs in as what it does, and as nothing more."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.acceptance import strict_application
from tests.chaos.processes import ROOT, environment, wait_until
from tests.clusters import Cluster
from tests.strict import StrictDatabase, strict_database

pytestmark = pytest.mark.pg

JOBS = "select coalesce(array_agg(outcome::text order by outcome), '{}') from onecommit.completion"
WORK = "select coalesce(max(state), '') from onecommit.work"


@pytest.fixture
def strict(postgres: Cluster) -> Iterator[StrictDatabase]:
    with strict_database(postgres) as store:
        with store.connect() as owner:
            owner.execute("create table ledger (n integer primary key, login name not null)")
        yield store


def in_process(strict: StrictDatabase, login: str, script: str) -> None:
    """A short-lived process of the application, as this login."""
    text = f"from tests.acceptance.strict_application import app, note, settle, work\n{script}\n"
    env = environment(strict, login=login)
    subprocess.run([sys.executable, "-c", text], env=env, cwd=ROOT, check=True)


def seen(strict: StrictDatabase, query: str) -> Any:
    with strict.connect() as observer:
        return observer.execute(query).fetchone()[0]


def test_jobs_and_work_run_with_a_login_for_each_part(strict: StrictDatabase):
    """Producer, acceptor, worker and finalizer; a failed attempt is retried, and the row commits with its completion."""
    assert strict_application.app is not None
    worker = subprocess.Popen(
        [sys.executable, "-m", "onecommit", "worker", "tests.acceptance.strict_application:app"],
        env=environment(strict, login="worker"),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )
    try:
        in_process(
            strict,
            "web",
            "settle.sync.enqueue(n=7)\nnote.sync.enqueue(n=1)\nnote.sync.enqueue(n=2)",
        )
        in_process(
            strict,
            "web",
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
    assert seen(strict, "select array_agg(n || ' by ' || login) from ledger") == ["7 by finalizer"]
    with psycopg.connect(strict.login("operators"), autocommit=True) as connection:
        connection.execute(
            "select onecommit.pause_queue('plain', 'ada', 'a look', %s)",
            (strict.identity["epoch"],),
        )
    assert seen(strict, "select paused from onecommit.queue where queue = 'plain'") is True
