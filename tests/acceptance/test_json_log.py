"""`onecommit worker --log-format json`: every line that a real process writes is one JSON object, and none holds a payload."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.chaos.processes import ROOT, environment
from tests.clusters import MAJORS, Clusters
from tests.strict import PASSWORD, StrictDatabase, strict_database

pytestmark = pytest.mark.pg

SECRET = "only-the-handler-reads-this"


@pytest.fixture
def database(clusters: Clusters) -> Iterator[StrictDatabase]:
    """What is written does not depend on the major."""
    with strict_database(clusters.get(max(MAJORS))) as fresh:
        yield fresh


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=env, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=90,
    )  # fmt: skip


def logged(*options: str, env: dict[str, str], code: int) -> list[dict[str, Any]]:
    """The lines of a worker that runs its queue empty, after what each of them must hold."""
    application = "tests.acceptance.logging_application:app"
    ended = run(
        "-m", "onecommit", "worker", application, "--log-format=json", "--once", *options, env=env
    )
    assert ended.returncode == code, ended.stderr
    assert SECRET not in ended.stderr
    assert PASSWORD not in ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    now = datetime.now(UTC)
    for line in lines:
        assert timedelta() <= now - datetime.fromisoformat(line["at"]) < timedelta(minutes=5)
        assert isinstance(line["level"], str)
        assert ("name" in line) != ("message" in line), line
    return lines


def test_events_are_written_with_their_fields(database: StrictDatabase):
    """Numbers stay numbers, a failed attempt says where and never what, a handler's own record names its job."""
    enqueue = f"from tests.acceptance.logging_application import fail; print(fail.sync.enqueue(to={SECRET!r}).job_id)"
    web = run("-c", enqueue, env=environment(database, login="web"))
    job = int(web.stdout)
    lines = logged(env=environment(database, login="worker"), code=0)
    events = {line["name"]: line for line in lines if "name" in line}
    assert {"worker.started", "attempt.failed", "worker.stopped"} <= events.keys()
    assert events["worker.started"]["queues"] == "logged:20"
    assert isinstance(events["worker.started"]["worker"], int)
    failed = events["attempt.failed"]
    assert (failed["level"], failed["logger"]) == ("WARNING", "onecommit")
    assert (failed["job"], failed["kind"], failed["attempt"]) == (job, "fail", 1)
    assert (failed["code"], failed["failure"]) == ("handler_error", "ValueError")
    assert "logging_application.py" in failed["frames"]
    said, caught = (line for line in lines if line["logger"] == "onecommit.job")
    assert said["message"] == "two\nlines of [onecommit]"
    assert (said["job_id"], said["kind"], said["attempt"]) == (job, "fail", 1)
    assert "colour" not in said
    assert "exception" not in said
    assert caught["exception"].startswith("Traceback")
    assert caught["exception"].endswith("KeyError: 'a'")


@pytest.mark.parametrize("processes", [1, 2])
def test_a_refusal_is_a_line_too(database: StrictDatabase, processes: int):
    """Also where processes of their own are refused, and the one above them gives up."""
    env = environment(database, login="web")
    lines = logged(f"--processes={processes}", env=env, code=78)
    refused = [line for line in lines if "message" in line]
    assert refused
    for line in refused:
        assert line["level"] == "CRITICAL"
        assert line["message"].startswith("42501: the login lacks the capability")
