"""A server does not outlive whoever started it, however that one ends."""

import os
import signal
import sys
from pathlib import Path

import psycopg
import pytest

from onecommit.embedded import EmbeddedPostgres, Server

from tests.embedded.processes import Owner, eventually, server_processes

pytestmark = [
    pytest.mark.pg,
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

START = """
import os, signal, sys
from onecommit.embedded import EmbeddedPostgres
server = EmbeddedPostgres({arguments}).start()
print("ready", server.server.directory.path, server.server.record.supervisor, server.dsn(), flush=True)
"""
WAIT = "sys.stdin.read()\n"
FORK_AND_WAIT = """
if os.fork() == 0:
    signal.pause()  # keeps a copy of everything the owner has open
print("forked", flush=True)
sys.stdin.read()
"""
BUSY = "select count(*) from generate_series(1, 1e12::bigint)"


def program(data_dir: Path | None = None, *, then: str = WAIT) -> str:
    return START.format(arguments=repr(str(data_dir)) if data_dir else "") + then


@pytest.fixture
def busy_backends():
    """Connect to a server and let one backend sleep and another one compute without a pause."""
    connections = []

    def keep_busy(dsn: str) -> None:
        for query in ("select pg_sleep(3600)", BUSY):
            connection = psycopg.connect(dsn, autocommit=True)
            connections.append(connection)
            connection.pgconn.send_query(query.encode())

    yield keep_busy
    for connection in connections:
        connection.close()


def dsn_of(owner: Owner) -> str:
    return Server.find(owner.data_dir).dsn()


def test_sigkill_of_the_owner_ends_every_process_of_its_server(busy_backends):
    """Postmaster, auxiliary processes, sleeping and busy backends and the temporary data are gone."""
    with Owner(program()) as owner:
        busy_backends(dsn_of(owner))
        assert len(server_processes(owner.data_dir)) > 5
        os.kill(owner.process.pid, signal.SIGKILL)
        eventually(owner.nothing_is_left, what="all processes of the server end")
        eventually(lambda: not owner.data_dir.exists(), what="the temporary data is deleted")


def test_sigkill_of_the_owners_process_group_ends_the_server(shared_dir):
    """A shell or CI runner that kills the whole group does not spare the server."""
    with Owner(program(shared_dir / "data"), start_new_session=True) as owner:
        os.killpg(owner.process.pid, signal.SIGKILL)
        eventually(owner.nothing_is_left, what="all processes of the server end")


def test_a_forked_child_does_not_keep_the_server_of_its_dead_parent(shared_dir):
    """The child holds the pipe to the supervisor open, so that its end alone would tell nothing."""
    with Owner(program(shared_dir / "data", then=FORK_AND_WAIT), start_new_session=True) as owner:
        try:
            assert owner.read() == "forked"
            os.kill(owner.process.pid, signal.SIGKILL)
            eventually(owner.nothing_is_left, what="all processes of the server end")
        finally:
            os.killpg(owner.process.pid, signal.SIGKILL)


def test_an_owner_that_forgets_to_stop_leaves_nothing():
    """Ending without stop() is enough."""
    with Owner(program(then="")) as owner:
        eventually(owner.nothing_is_left, what="all processes of the server end")
        eventually(lambda: not owner.data_dir.exists(), what="the temporary data is deleted")


def test_sigkill_of_the_supervisor_ends_the_server(shared_dir, busy_backends):
    """The kernel passes its death on to the postmaster."""
    with Owner(program(shared_dir / "data")) as owner:
        busy_backends(dsn_of(owner))
        os.kill(owner.supervisor, signal.SIGKILL)
        eventually(owner.nothing_is_left, what="all processes of the server end")


def test_data_of_a_killed_owner_can_be_used_at_once(shared_dir):
    """The next start waits for the old server's shutdown and finds what was committed."""
    data_dir = shared_dir / "data"
    with Owner(program(data_dir)) as owner:
        with psycopg.connect(dsn_of(owner)) as connection:
            connection.execute("create table invoice as select 42 as id")
        os.kill(owner.process.pid, signal.SIGKILL)
        with (
            EmbeddedPostgres(data_dir) as server,
            psycopg.connect(server.dsn()) as connection,
        ):
            assert connection.execute("select id from invoice").fetchall() == [(42,)]
