"""`onecommit migrate`, `status` and `epoch`, run as programs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from onecommit.schema import apply, initialize_epoch, script, status
from onecommit.schema.lock import Patience
from onecommit.schema.session import owner_session

from tests.schema.observation import advisory_locks, gone, waiting_pid

ONECOMMIT = Path(sys.executable).with_name("onecommit")


def environment(**variables: str) -> dict[str, str]:
    """The environment of a command: ours without anything that names a database."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "ONECOMMIT_"))
    }
    return kept | {"USER": "ada"} | variables


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [ONECOMMIT, *arguments], env=environment(**variables),
        text=True, capture_output=True, check=False, timeout=90, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def settings(output: str) -> dict[str, str]:
    """The lines that a deployment copies."""
    return dict(line.split("=", 1) for line in output.splitlines() if line.startswith("ONECOMMIT_"))


@pytest.mark.pg
def test_migrate_init_makes_a_store_ready_and_can_be_run_again(dsn):
    """It prints the same identity each time, and the status agrees."""
    first = run("migrate", "--init", ONECOMMIT_DSN=dsn)
    assert first.returncode == 0, first.stderr
    again = run("migrate", "--init", ONECOMMIT_DSN=dsn, **settings(first.stdout))
    assert again.returncode == 0, again.stderr
    assert "nothing to do" in again.stdout
    report = status(dsn)
    assert settings(first.stdout) == settings(again.stdout) == {
        "ONECOMMIT_STORE_ID": str(report.store_id),
        "ONECOMMIT_EPOCH": str(report.active_epoch),
    }  # fmt: skip


@pytest.mark.pg
def test_status_answers_by_exit_code_text_and_json(dsn):
    """0 is compatible, 3 is every other state, 1 is an error."""
    missing = run("status", ONECOMMIT_DSN=dsn)
    assert (missing.returncode, "missing" in missing.stdout) == (3, True)
    apply(dsn)
    found = run("status", "--json", ONECOMMIT_DSN=dsn)
    assert found.returncode == 0
    facts = json.loads(found.stdout)
    assert (facts["state"], facts["active_epoch"]) == ("compatible", None)
    assert facts["store_id"] == str(status(dsn).store_id)
    assert facts["finalization"] == []
    unreachable = run("status", ONECOMMIT_DSN="host=/nowhere dbname=hush")
    assert (unreachable.returncode, unreachable.stdout) == (1, "")
    assert "hush" not in unreachable.stderr
    assert "Traceback" not in unreachable.stderr


@pytest.mark.pg
def test_status_names_the_queues_that_accept_caller_owned_completion(dsn):
    """And the old workers for which another one waits."""
    apply(dsn)
    initialize_epoch(dsn, actor="me", reason="test")
    register = (
        "select onecommit.register_worker(%s, %s, active_epoch) from onecommit.store_status()"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("insert into onecommit.queue (queue) values ('email')")
        connection.execute(register, ("old", '{"queues": ["email"]}'))
        info = '{"queues": ["billing", "email"], "capabilities": ["caller_owned_v1"]}'
        connection.execute(register, ("new", info))
    text = run("status", ONECOMMIT_DSN=dsn).stdout
    assert "billing; email (not while these old workers serve it: old)" in text
    facts = json.loads(run("status", "--json", ONECOMMIT_DSN=dsn).stdout)
    assert facts["finalization"] == [
        {"queue": "billing", "enabled": True, "waiting_for": [], "disabled": False},
        {"queue": "email", "enabled": False, "waiting_for": ["old"], "disabled": False},
    ]


@pytest.mark.pg
def test_status_names_the_queues_that_an_operator_has_disabled(dsn):
    """The old workers that serve it do not matter then."""
    apply(dsn)
    initialize_epoch(dsn, actor="me", reason="test")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("insert into onecommit.queue (queue) values ('email')")
        connection.execute(
            "select onecommit.disable_caller_owned('email', 'me', 'test', active_epoch)"
            " from onecommit.store_status()"
        )
    assert "email (disabled by an operator)" in run("status", ONECOMMIT_DSN=dsn).stdout
    facts = json.loads(run("status", "--json", ONECOMMIT_DSN=dsn).stdout)
    assert facts["finalization"] == [
        {"queue": "email", "enabled": False, "waiting_for": [], "disabled": True}
    ]


@pytest.mark.pg
def test_the_dsn_comes_from_a_file_or_from_libpqs_variables(dsn, tmp_path):
    """Never from an argument."""
    file = tmp_path / "dsn"
    file.write_text(dsn + "\n")
    assert run("status", "--dsn-file", str(file)).returncode == 3
    with owner_session(dsn, schema="x", patience=Patience()) as connection:
        info = connection.info
        variables = {
            "PGHOST": info.host, "PGPORT": str(info.port), "PGUSER": info.user,
            "PGPASSWORD": info.password, "PGDATABASE": info.dbname,
        }  # fmt: skip
    assert run("status", **variables).returncode == 3


def test_without_a_database_the_command_says_how_to_name_one():
    """It does not connect to whatever libpq would guess."""
    ended = run("migrate")
    assert ended.returncode == 1
    assert "ONECOMMIT_DSN" in ended.stderr


def test_migrate_script_needs_no_database():
    """It prints what the library generates, and nothing else."""
    ended = run("migrate", "--script", "--from", "1", "--schema", "we ird")
    assert (ended.returncode, ended.stdout) == (0, script(1, schema="we ird"))


def test_a_refused_schema_name_is_a_sentence():
    """Exit code 1 and no traceback."""
    ended = run("migrate", "--script", "--schema", 'a"b')
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: 22023: schema: ")


@pytest.mark.pg
def test_epoch_commands_activate_and_rotate(dsn):
    """Rotation asks first, takes the expected epoch from the deployment's settings, and refuses a stale one."""
    apply(dsn)
    first = run("epoch", "init", "--reason", "first deployment", ONECOMMIT_DSN=dsn)
    assert first.returncode == 0, first.stderr
    deployed = {"ONECOMMIT_DSN": dsn} | settings(first.stdout)
    unanswered = run("epoch", "rotate", "--reason", "restored", **deployed)
    assert unanswered.returncode == 1
    assert status(dsn).active_epoch == int(deployed["ONECOMMIT_EPOCH"])
    rotated = run("epoch", "rotate", "--reason", "restored", "--yes", **deployed)
    assert rotated.returncode == 0, rotated.stderr
    assert int(settings(rotated.stdout)["ONECOMMIT_EPOCH"]) == status(dsn).active_epoch
    stale = run("epoch", "rotate", "--reason", "restored", "--yes", **deployed)
    assert stale.returncode == 1
    assert "OC004" in stale.stderr


@pytest.mark.pg
def test_an_interrupted_wait_leaves_no_lock_and_says_whom_it_waited_for(dsn, admin):
    """Ctrl-C ends a waiting migrate at once; its session and its place in the queue are gone."""
    with owner_session(dsn, schema="onecommit", patience=Patience()) as owner:
        waiter = subprocess.Popen(
            [ONECOMMIT, "migrate"], env=environment(ONECOMMIT_DSN=dsn),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        waiting_pid(admin, "advisory", blocked_by=owner.info.backend_pid)
        assert waiter.stderr is not None
        assert f"held by pid {owner.info.backend_pid}" in waiter.stderr.readline()
        pid = waiting_pid(admin, "advisory", blocked_by=owner.info.backend_pid)
        waiter.send_signal(signal.SIGINT)
        _, complaints = waiter.communicate(timeout=30)
        assert waiter.returncode != 0
        assert "Traceback" not in complaints
        gone(admin, pid)
        assert advisory_locks(admin) == [owner.info.backend_pid]
