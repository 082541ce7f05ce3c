"""`onecommit worker --metrics-port`: every process at a port of its own, and bad input refused at once."""

import http.client
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from tests.chaos.processes import environment, start, terminate, wait_until, worker
from tests.clusters import MAJORS, Clusters
from tests.strict import StrictDatabase, strict_database

pytestmark = pytest.mark.pg


@pytest.fixture
def database(clusters: Clusters) -> Iterator[StrictDatabase]:
    """The command line does not depend on the major."""
    with strict_database(clusters.get(max(MAJORS))) as fresh:
        yield fresh


@pytest.fixture
def env(database: StrictDatabase) -> dict[str, str]:
    return environment(database, login="worker")


@pytest.fixture
def port() -> int:
    """The first of three ports in a row that are free, as far as can be known."""
    while True:
        with ExitStack() as stack, suppress(OSError, OverflowError):
            first = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for port in (first + 1, first + 2):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


def status(port: int, path: str) -> int:
    """What the path answers; 0 while nobody does."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except ConnectionRefusedError:
            return 0


def test_each_process_answers_at_a_port_of_its_own(env: dict[str, str], port: int):
    with worker("--processes", "2", "--metrics-port", str(port), env=env) as process:
        for own in (port, port + 1):
            wait_until(lambda own=own: status(own, "/readyz") == 200, what=f"{own} is ready")
            assert status(own, "/livez") == status(own, "/metrics") == 200
        assert status(port + 2, "/livez") == 0
        assert terminate(process) == 0


@pytest.mark.parametrize("processes", [1, 3])
def test_a_port_in_use_is_refused_before_a_worker_registers(
    database: StrictDatabase, env: dict[str, str], port: int, processes: int
):
    """With several processes too: none starts if one of them could not."""
    with socket.create_server(("127.0.0.1", port + processes - 1)):
        ended = run(env, f"--processes={processes}", f"--metrics-port={port}")
    assert ended.returncode == 78
    assert f"port {port + processes - 1} of '127.0.0.1': Address already in use" in ended.stderr
    assert "Choose another port" in ended.stderr
    assert "Traceback" not in ended.stderr
    with database.connect() as connection:
        assert connection.execute("select count(*) from onecommit.worker").fetchone() == (0,)


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--metrics-port=65535", "--processes=3"], 2, "65537"),
        (["--metrics-port=0"], 2, "--metrics-port"),
        (["--metrics-port=70000"], 2, "--metrics-port"),
        (["--metrics-port=9464", "--metrics-host=192.0.2.1"], 78, "Choose another port or host"),
    ],
)
def test_an_address_that_cannot_be_is_refused(env, options: list[str], code: int, text: str):
    ended = run(env, *options)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)
    assert text in ended.stderr


def run(env: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    process = start(*options, env=env | {"COLUMNS": "200"}, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, None, said.decode())
