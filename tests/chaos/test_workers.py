"""Workers and servers are killed at work; afterwards each job is completed and each settlement written once."""

import os
import random
import signal
import subprocess
import sys

import psutil
import pytest

from tests.chaos.processes import (
    LEDGER,
    OPEN_JOBS,
    ROOT,
    environment,
    observe,
    start,
    terminate,
    wait_until,
    worker,
)
from tests.clusters import Cluster, binaries
from tests.strict import database, strict_database

__all__ = ["database"]
pytestmark = [pytest.mark.pg, pytest.mark.chaos]

JOBS = 400
QUEUES = ("--queue", "settle:8", "--queue", "plain:8", "--rescue-seconds", "2")


@pytest.fixture
def env(database):
    with database.connect() as connection:
        connection.execute(LEDGER)
    return environment(database, login="worker")


def enqueue(database, *, count=JOBS):
    """Jobs of both kinds, by the application's own definitions, in a process that is no worker."""
    script = (
        "from tests.chaos.application import app, note, settle\n"
        f"jobs = [{{'n': n}} for n in range({count})]\n"
        "settle.sync.enqueue_many(jobs)\n"
        "note.sync.enqueue_many(jobs)\n"
    )
    run(database, script)


def run(database, script):
    subprocess.run(
        [sys.executable, "-c", script], env=environment(database, login="web"), cwd=ROOT, check=True
    )


def both_registered(database):
    alive = "select count(*) from onecommit.worker where ended_at is null"
    return lambda: observe(database, alive) == 2


def assert_each_settled_once(database, *, count=JOBS):
    settled = "select count(*) from ledger where n >= 0"
    distinct = "select count(distinct n) from ledger where n >= 0"
    assert observe(database, settled) == observe(database, distinct) == count
    per_job = """
        select count(*) from onecommit.ready r
        join onecommit.completion c on c.slot = r.slot and c.lane = r.lane and c.seq = r.seq
        where c.outcome = 'completed'
    """
    assert observe(database, per_job) == 2 * count
    assert observe(database, "select count(*) from onecommit.dead_letter") == 0


def settled_at_least(database, number):
    return lambda: observe(database, "select count(*) from ledger where n >= 0") >= number


def nothing_open(database):
    return lambda: observe(database, OPEN_JOBS) == 0


def test_a_worker_killed_at_work_is_replaced_by_another(database, env):
    enqueue(database)
    with worker(*QUEUES, env=env) as first:
        wait_until(settled_at_least(database, JOBS // 4), what="a quarter settled")
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert observe(database, OPEN_JOBS) > 0, "it was killed too late to matter"
    with worker(*QUEUES, env=env) as second:
        wait_until(nothing_open(database), what="all jobs closed")
        assert terminate(second) == 0
    assert_each_settled_once(database)


def test_a_frozen_worker_that_wakes_up_after_its_rescue_commits_nothing(database, env):
    enqueue(database)
    with worker(*QUEUES, env=env) as first, worker(*QUEUES, env=env) as second:
        wait_until(both_registered(database), what="both workers run")
        wait_until(settled_at_least(database, JOBS // 8), what="an eighth settled")
        first.send_signal(signal.SIGSTOP)
        wait_until(nothing_open(database), what="all jobs closed by the other")
        first.send_signal(signal.SIGCONT)
        assert terminate(first) == 0
        assert terminate(second) == 0
    assert_each_settled_once(database)


@pytest.mark.parametrize("major", [15, 18])
def test_a_server_that_crashes_under_load_costs_no_job(clusters, major):
    from onecommit.embedded import EmbeddedPostgres

    with (
        EmbeddedPostgres(bin_dir=binaries(major)) as server,
        strict_database(Cluster(major=major, server=server)) as database,
    ):
        with database.connect() as connection:
            connection.execute(LEDGER)
        enqueue(database)
        with worker(*QUEUES, env=environment(database, login="worker")) as process:
            for part in (4, 2):
                wait_until(settled_at_least(database, JOBS // part), what=f"1/{part} settled")
                server.restart("immediate")
            wait_until(nothing_open(database), what="all jobs closed")
            assert terminate(process) == 0
        assert_each_settled_once(database)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_workers_killed_at_random_moments_lose_and_repeat_nothing(database, env):
    count = 5_000
    enqueue(database, count=count)
    running = [start(*QUEUES, env=env) for _ in range(3)]
    try:
        for step in range(1, 16):
            part = count * step // 16
            wait_until(settled_at_least(database, part), what=f"{part} settled")
            victim = random.randrange(len(running))
            running[victim].send_signal(signal.SIGKILL)
            running[victim].wait()
            running[victim] = start(*QUEUES, env=env)
        wait_until(nothing_open(database), what="all jobs closed")
        # One that was started a moment ago has no handler for the signal yet, and no jobs.
        assert {terminate(process) for process in running} <= {0, -signal.SIGTERM}
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert_each_settled_once(database, count=count)


def test_once_runs_the_queues_empty_and_exits(database, env):
    enqueue(database, count=50)
    with worker(*QUEUES, "--once", env=env) as process:
        assert process.wait(90) == 0
    assert observe(database, OPEN_JOBS) == 0
    assert_each_settled_once(database, count=50)


def test_children_are_restarted_and_end_with_their_supervisor(database, env):
    supervisor = start(*QUEUES, "--processes", "2", env=env)
    try:
        parent = psutil.Process(supervisor.pid)
        workers = "select count(*) from onecommit.worker where ended_at is null"
        wait_until(lambda: observe(database, workers) == 2, what="two workers registered")
        children = parent.children()
        assert len(children) == 2
        children[0].kill()
        wait_until(
            lambda: observe(database, "select count(*) from onecommit.worker") == 3, what="a third"
        )
        enqueue(database, count=50)
        wait_until(nothing_open(database), what="all jobs closed")
        children = parent.children()
        supervisor.kill()
        supervisor.wait()
        _, alive = psutil.wait_procs(children, timeout=60)
        assert not alive, "children outlive their supervisor"
    finally:
        supervisor.kill()
        supervisor.wait()
    assert_each_settled_once(database, count=50)


def test_sigterm_drains_all_processes(database, env):
    supervisor = start(*QUEUES, "--processes", "2", env=env)
    try:
        workers = "select count(*) from onecommit.worker where ended_at is null"
        wait_until(lambda: observe(database, workers) == 2, what="two workers registered")
        assert terminate(supervisor) == 0
        assert observe(database, workers) == 0
    finally:
        supervisor.kill()
        supervisor.wait()


def test_the_second_signal_does_not_wait_for_the_budget(database, env):
    run(database, "from tests.chaos.application import block; block.sync.enqueue()")
    with worker("--queue", "stuck", "--drain-seconds", "3600", env=env) as process:
        running = "select count(*) from ledger where n = -1"
        wait_until(lambda: observe(database, running) == 1, what="the job runs")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"ONECOMMIT_EPOCH": "1"}, 78, b"OC004"),
        ({"ONECOMMIT_STORE_ID": "00000000-0000-0000-0000-000000000000"}, 78, b"another store"),
        ({"ONECOMMIT_DSN": "postgresql://127.0.0.1:1/none"}, 69, b"could not be reached"),
    ],
    ids=["epoch", "store", "server"],
)
def test_a_store_that_does_not_fit_is_named_with_its_exit_code(database, env, change, code, text):
    command = [sys.executable, "-m", "onecommit", "worker", "tests.chaos.application:app"]
    ended = subprocess.run(
        command, env=env | change, cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == code
    assert text in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_missing_schema_is_named_with_its_exit_code(empty_database):
    env = os.environ | {"ONECOMMIT_DSN": empty_database.dsn}
    command = [sys.executable, "-m", "onecommit", "worker", "tests.chaos.application:app"]
    ended = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 78
    assert b"onecommit migrate" in ended.stderr


@pytest.mark.parametrize("path", ["nowhere:app", "tests.chaos.application:nothing", "colonless"])
def test_an_app_that_is_not_there_is_a_usage_error(path):
    command = [sys.executable, "-m", "onecommit", "worker", path]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert b"Traceback" not in ended.stderr
