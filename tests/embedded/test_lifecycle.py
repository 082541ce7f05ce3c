"""Starting, stopping, killing and restarting a server."""

import os
import signal
import socket

import psycopg
import pytest

from onecommit.embedded import EmbeddedPostgres, EmbeddedPostgresError, ServerNotRunning, launcher
from onecommit.errors import InvalidArgument, UsageError

from tests.embedded.processes import server_processes

pytestmark = pytest.mark.pg

BUSY = b"select count(*) from generate_series(1, 1e12::bigint)"


def one(dsn: str, query: str):
    """The one value that a query returns, over a connection of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def execute(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)


def test_a_temporary_server_accepts_connections_and_leaves_nothing(bin_dir):
    """After stop() there is no process, no data and no socket."""
    server = EmbeddedPostgres(bin_dir=bin_dir).start()
    data_dir = server.server.directory.path
    sockets = server.server.record.socket_directory
    try:
        assert one(server.dsn(), "select 1") == 1
        assert one(server.dsn(), "select current_setting('server_version_num')::int / 10000") == (
            server.server.major
        )
        assert [path.name for path in sockets.iterdir() if path.is_socket()]
        assert server_processes(data_dir)
    finally:
        server.stop()
    assert not server_processes(data_dir)
    assert not data_dir.exists()
    assert not sockets.exists()


def test_the_defaults_are_durable_and_local(postgres):
    """The server syncs, listens on 127.0.0.1 alone and knows 200 connections."""
    names = ("fsync", "listen_addresses", "max_connections", "shared_buffers", "wal_level")
    values = [one(postgres.server.dsn(), f"show {name}") for name in names]
    assert values == ["on", "127.0.0.1", "200", "128MB", "replica"]


def test_servers_run_side_by_side():
    """Two servers have their own ports, sockets and data."""
    with EmbeddedPostgres() as first, EmbeddedPostgres() as second:
        execute(first.dsn(), "create table only_here ()")
        assert one(second.dsn(), "select to_regclass('only_here')") is None
        assert first.server.port != second.server.port
        assert first.server.record.socket_directory != second.server.record.socket_directory


@pytest.fixture(scope="module")
def server(bin_dir):
    """A server that tests may crash, if they start it again."""
    with EmbeddedPostgres(bin_dir=bin_dir) as running:
        yield running


def test_kill_leaves_no_process_and_start_recovers(server):
    """A backend that computes does not notice that its postmaster died; kill() waits for it all the same."""
    dsn = server.dsn()
    execute(dsn, "create table kept_by_kill as select 42 as id")
    connection = psycopg.connect(dsn, autocommit=True)
    connection.pgconn.send_query(BUSY)
    server.kill()
    assert not server_processes(server.server.directory.path)
    with pytest.raises(psycopg.OperationalError):
        one(dsn, "select 1")
    server.start()
    connection.close()
    assert server.dsn() == dsn
    assert one(dsn, "select id from kept_by_kill") == 42


def test_an_immediate_restart_keeps_data_and_port(server):
    """What was committed is there again under the same DSN, and the old sessions are gone."""
    dsn = server.dsn()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table kept_by_restart as select 42 as id")
        server.restart()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
    assert server.dsn() == dsn
    assert one(dsn, "select id from kept_by_restart") == 42


def test_a_crashed_server_can_be_started_again(server):
    """start() after somebody else killed the postmaster works as after kill()."""
    dsn = server.dsn()
    os.kill(server.server.pid, signal.SIGKILL)
    server.start()
    assert server.dsn() == dsn
    assert one(dsn, "select 1") == 1


def test_alter_system_cannot_open_the_server_to_the_network(server):
    """Addresses and sockets are given where ALTER SYSTEM does not reach; other settings it may change."""
    execute(server.dsn(), "alter system set listen_addresses = '*'")
    execute(server.dsn(), "alter system set work_mem = '7MB'")
    server.restart("fast")
    assert one(server.dsn(), "show listen_addresses") == "127.0.0.1"
    assert one(server.dsn(), "show work_mem") == "7MB"


def test_data_and_port_outlive_the_object(shared_dir):
    """A data directory can be started again later, under the same port and password."""
    data_dir = shared_dir / "data"
    with EmbeddedPostgres(data_dir) as server:
        dsn = server.dsn()
        execute(dsn, "create table invoice as select 42 as id")
    with EmbeddedPostgres(data_dir) as server:
        assert server.dsn() == dsn
        assert one(dsn, "select id from invoice") == 42


def test_a_taken_port_is_left_to_its_holder(shared_dir, monkeypatch):
    """Between choosing a port and using it another program may come first; the next one is tried."""
    free_port = launcher.free_port
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        offered = iter([taken, taken])
        monkeypatch.setattr(launcher, "free_port", lambda: next(offered, None) or free_port())
        with EmbeddedPostgres(shared_dir / "new") as server:
            assert next(offered, None) is None
            assert server.server.port != taken
            assert one(server.dsn(), "select 1") == 1


def test_stop_is_harmless_before_and_after():
    """Without a running server stop() has nothing to do, and dsn() says so."""
    server = EmbeddedPostgres()
    server.stop()
    server.start()
    server.stop()
    server.stop("immediate")
    with pytest.raises(ServerNotRunning):
        server.dsn()


def test_settings_reach_the_server(shared_dir):
    """Values with quotes and backslashes arrive unchanged, and override the defaults."""
    settings = {"work_mem": "5MB", "max_connections": "20", "app.motto": r"it's \n fine"}
    with EmbeddedPostgres(shared_dir / "data", settings=settings) as server:
        for name, value in settings.items():
            assert one(server.dsn(), f"show {name}") == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listen_addresses", "*"),
        ("PORT", "5432"),
        ("unix_socket_directories", "/run"),
        ("work_mem = '1MB'\nfsync", "off"),
        ("work_mem", "1MB'\nfsync = 'off"),
        ("", "1"),
    ],
)
def test_settings_that_would_break_the_promises_are_refused(name, value):
    """Nothing is started, and the message does not repeat the value."""
    with pytest.raises(InvalidArgument) as refused:
        EmbeddedPostgres(settings={name: value})
    assert value not in str(refused.value) or value == "1"


def test_a_server_that_does_not_start_says_why_and_leaves_nothing(work_dir, monkeypatch):
    """The error carries what the server logged; the temporary data is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(work_dir))
    with pytest.raises(EmbeddedPostgresError, match="unrecognized configuration parameter"):
        EmbeddedPostgres(settings={"no_such_setting": "1"}).start()
    assert list(work_dir.iterdir()) == []


def test_a_database_can_be_created_from_a_template(postgres):
    """Any name works, and the copy has what the template has."""
    server = postgres.server
    odd = """it's "a" %20 name; drop database postgres"""
    server.create_database("onecommit_original")
    try:
        execute(server.dsn("onecommit_original"), "create table invoice as select 42 as id")
        server.create_database(odd, template="onecommit_original")
        assert one(server.dsn(odd), "select id from invoice") == 42
        assert one(server.dsn(odd), "select current_database()") == odd
        with pytest.raises(EmbeddedPostgresError, match="already exists"):
            server.create_database("onecommit_original")
    finally:
        quoted = odd.replace('"', '""')
        execute(server.dsn(), f'drop database if exists "{quoted}"')
        execute(server.dsn(), "drop database onecommit_original")


def test_a_detached_server_needs_a_data_directory():
    """Temporary data is deleted by the process that started the server, so it cannot be left alone."""
    with pytest.raises(UsageError):
        EmbeddedPostgres().start(detached=True)
