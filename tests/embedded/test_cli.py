"""`onecommit embedded`, run as a program."""

import json
import os
import subprocess
import sys

import psycopg
import pytest

from onecommit.embedded import Server

from tests.embedded.processes import server_processes

pytestmark = pytest.mark.pg

PROGRAM = [sys.executable, "-c", "from onecommit.cli import main; main()", "embedded"]


@pytest.fixture(scope="module")
def embedded(shared_dir):
    """Run a command of the group in a project directory; what it started is stopped at the end."""
    environment = {k: v for k, v in os.environ.items() if k != "ONECOMMIT_EMBEDDED_DIR"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=shared_dir,
            env=environment,
            timeout=90,
        )

    yield run
    if server := Server.find(shared_dir / ".onecommit" / "postgresql"):
        server.stop("immediate")


@pytest.fixture
def started(embedded, shared_dir):
    """The running server, as found from outside, and what the command printed."""
    printed = embedded("start", "--set", "work_mem=5MB")
    assert printed.returncode == 0, printed.stderr
    return Server.find(shared_dir / ".onecommit" / "postgresql"), printed


def test_start_returns_and_leaves_a_server(started, embedded):
    """The DSN is printed on demand only, and it works."""
    server, printed = started
    password = server.directory.password()
    assert password not in printed.stdout + printed.stderr
    assert "onecommit embedded dsn" in printed.stderr
    dsn = embedded("dsn").stdout.strip()
    assert password in dsn
    with psycopg.connect(dsn) as connection:
        assert connection.execute("show work_mem").fetchone() == ("5MB",)


def test_a_second_start_finds_the_first_server(started, embedded):
    """With --print-dsn, standard output holds the DSN alone."""
    server, _ = started
    again = embedded("start", "--print-dsn")
    assert again.stdout == embedded("dsn").stdout
    facts = json.loads(embedded("status", "--json").stdout)
    assert (facts["pid"], facts["port"]) == (server.pid, server.port)


def test_stop_leaves_the_data_and_no_process(started, embedded):
    """Status says so, by its exit code as well; stopping again is no error."""
    server, _ = started
    assert embedded("status").returncode == 0
    assert embedded("stop").returncode == 0
    assert not server_processes(server.directory.path)
    assert server.directory.cluster.is_dir()
    assert embedded("status").returncode == 3
    assert json.loads(embedded("status", "--json").stdout)["running"] is False
    assert embedded("stop").returncode == 0


def test_psql_talks_to_the_running_server(started, embedded):
    """It finds server and password by itself; the password is in no argument."""
    server, _ = started
    run = embedded("psql", "--", "-Atc", "select current_user, current_setting('port')")
    assert run.stdout.strip() == f"postgres|{server.port}", run.stderr
    seen = embedded("psql", "--", "-Atc", "\\! tr '\\0' ' ' </proc/$PPID/cmdline")
    assert "psql" in seen.stdout
    assert server.directory.password() not in seen.stdout


def test_without_a_server_the_remedy_is_named(embedded, work_dir):
    """A sentence on standard error, exit code 1, no traceback."""
    for command in ("dsn", "psql"):
        run = embedded(command, "--data-dir", str(work_dir))
        assert (run.returncode, run.stdout) == (1, "")
        assert "onecommit embedded start" in run.stderr
        assert "Traceback" not in run.stderr


@pytest.mark.parametrize("line", ["port=5432", "work_mem"])
def test_an_unusable_setting_is_refused(embedded, work_dir, line):
    """Nothing is made, and the message is one line."""
    run = embedded("start", "--data-dir", str(work_dir / "data"), "--set", line)
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    assert list(work_dir.iterdir()) == []
