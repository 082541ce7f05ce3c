"""What happens to data directories: ours, others', and half-made ones."""

import os
import signal
import subprocess
import sys

import psycopg
import pytest

from onecommit.embedded import DataDirectoryRefused, EmbeddedPostgres, ServerRunning, directory
from onecommit.embedded.account import ServerAccount
from onecommit.embedded.binaries import Binaries

from tests.clusters import binaries
from tests.embedded.snapshots import snapshot

pytestmark = pytest.mark.pg

as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root starts the server as another user"
)

UMASK_077 = """
import os, sys
os.umask(0o077)
from onecommit.embedded import EmbeddedPostgres
server = EmbeddedPostgres(sys.argv[1]).start()
print(oct(os.stat(sys.argv[1]).st_mode), server.dsn() != "")
server.stop()
"""
START_ELSEWHERE = """
from onecommit.embedded import EmbeddedPostgres, directory
directory.LOCK_PATIENCE_SECONDS = 0.1
EmbeddedPostgres({data_dir!r}).start()
"""


def works(server: EmbeddedPostgres) -> bool:
    with psycopg.connect(server.dsn()) as connection:
        return connection.execute("select 1").fetchone() == (1,)


def test_a_directory_with_foreign_files_is_refused_untouched(work_dir):
    """A non-empty directory without our marker stays as it is."""
    (work_dir / "thesis.txt").write_text("irreplaceable")
    before = snapshot(work_dir)
    with pytest.raises(DataDirectoryRefused, match="not empty"):
        EmbeddedPostgres(work_dir).start()
    assert snapshot(work_dir) == before


def test_a_data_directory_of_another_installation_is_refused_untouched(work_dir):
    """A cluster that initdb made elsewhere is foreign as well."""
    (work_dir / "PG_VERSION").write_text("18\n")
    (work_dir / "postgresql.conf").write_text("")
    before = snapshot(work_dir)
    with pytest.raises(DataDirectoryRefused):
        EmbeddedPostgres(work_dir).start()
    assert snapshot(work_dir) == before


def test_a_file_in_its_place_is_refused(work_dir):
    """The path of a file cannot become a directory."""
    (work_dir / "file").write_text("")
    with pytest.raises(DataDirectoryRefused, match="not a directory"):
        EmbeddedPostgres(work_dir / "file").start()


def test_an_empty_directory_is_taken(work_dir):
    """Somebody who makes the directory first may use it."""
    with EmbeddedPostgres(work_dir) as server:
        assert works(server)


@as_root
def test_a_directory_of_another_user_is_refused(work_dir):
    """Root could take it, and does not."""
    os.chown(work_dir, 12345, 12345)
    before = snapshot(work_dir)
    with pytest.raises(DataDirectoryRefused, match="another user"):
        EmbeddedPostgres(work_dir).start()
    assert snapshot(work_dir) == before


@as_root
def test_a_directory_out_of_the_servers_reach_is_refused(work_dir):
    """No parent directory is opened up for the server's user."""
    private = work_dir / "private"
    private.mkdir(mode=0o700)
    before = snapshot(work_dir)
    with pytest.raises(DataDirectoryRefused, match="cannot enter"):
        EmbeddedPostgres(private / "deep" / "data").start()
    assert snapshot(work_dir) == before


@as_root
def test_the_command_line_finds_a_place_when_roots_directory_is_private(work_dir, monkeypatch):
    """The default lies in the current directory if the server can enter that, else in root's own state."""
    monkeypatch.chdir(work_dir)
    assert directory.default_data_dir() == work_dir / ".onecommit" / "postgresql"
    work_dir.chmod(0o700)
    assert directory.default_data_dir().parent == directory.STATE


def test_a_private_umask_does_not_get_in_the_way(work_dir):
    """The data directory gets the rights that it needs, and no more."""
    path = str(work_dir / "deep" / "data")
    run = subprocess.run(
        [sys.executable, "-c", UMASK_077, path], check=True, capture_output=True, text=True
    )
    mode = "0o40711" if os.geteuid() == 0 else "0o40700"
    assert run.stdout.split() == [mode, "True"]


def test_programs_of_another_major_are_refused(work_dir):
    """The message names both versions, and the data still works with its own programs."""
    old = binaries(15)
    with EmbeddedPostgres(work_dir, bin_dir=old):
        pass
    with pytest.raises(DataDirectoryRefused, match=r"PostgreSQL 15, these programs are 18"):
        EmbeddedPostgres(work_dir).start()
    with EmbeddedPostgres(work_dir, bin_dir=old) as server:
        assert works(server)


def test_a_second_server_on_the_same_data_is_refused(shared_dir, monkeypatch):
    """In this process or in another one; the first goes on undisturbed."""
    monkeypatch.setattr(directory, "LOCK_PATIENCE_SECONDS", 0.1)
    with EmbeddedPostgres(shared_dir / "data") as first:
        with pytest.raises(ServerRunning, match="a server already runs"):
            EmbeddedPostgres(shared_dir / "data").start()
        elsewhere = START_ELSEWHERE.format(data_dir=str(shared_dir / "data"))
        run = subprocess.run(
            [sys.executable, "-c", elsewhere], check=False, capture_output=True, text=True
        )
        assert "a server already runs" in run.stderr
        assert works(first)


def test_a_killed_initdb_is_made_up_for(work_dir):
    """What an interrupted first start left is replaced by a whole cluster."""
    data = directory.DataDirectory(work_dir)
    data.claim(ServerAccount.choose())
    (data.unfinished_cluster / "base").mkdir(parents=True)
    (data.unfinished_cluster / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(work_dir) as server:
        assert works(server)
        assert not data.unfinished_cluster.exists()


def test_a_stale_pid_file_does_not_prevent_a_start(shared_dir):
    """After a crash the old process id may belong to anybody, here to a process of the server's user."""
    with EmbeddedPostgres(shared_dir / "data") as server:
        pid_file = server.server.directory.cluster / "postmaster.pid"
        server.kill()
        account = ServerAccount.choose()
        with subprocess.Popen(["/bin/sleep", "600"], cwd="/", **account.identity()) as stranger:
            try:
                _, rest = pid_file.read_text().split("\n", 1)
                pid_file.write_text(f"{stranger.pid}\n{rest}")
                server.start()
                assert works(server)
                assert stranger.poll() is None
            finally:
                stranger.kill()


def test_a_server_that_others_started_on_our_data_is_left_alone(shared_dir):
    """Its pid file is not taken for a stale one."""
    account = ServerAccount.choose()
    program = Binaries.find(None, account=account).program("postgres")
    with EmbeddedPostgres(shared_dir / "data") as server:
        cluster = server.server.directory.cluster
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={cluster}"]
    with subprocess.Popen(
        [program, "-D", cluster, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        **account.identity(),
    ) as other:
        try:
            next(line for line in other.stdout if "ready to accept connections" in line)
            with pytest.raises(ServerRunning, match="not started by this layer"):
                EmbeddedPostgres(shared_dir / "data").start()
            assert other.poll() is None
            assert (cluster / "postmaster.pid").exists()
        finally:
            other.send_signal(signal.SIGINT)
            other.communicate()
