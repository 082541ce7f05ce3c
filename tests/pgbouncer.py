"""A PgBouncer before a test's database, in session or transaction mode."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.clusters import Database

PATIENCE_SECONDS = 20
CONFIGURATION = """
[databases]
{name} = host={host} port={port} dbname={name} user={user} password={password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {pool_size}
max_client_conn = 500
server_login_retry = 1
logfile = {directory}/log
"""


@contextmanager
def pgbouncer(database: Database, *, mode: str, pool_size: int = 50) -> Iterator[str]:
    """The DSN of the same database through a pooler that ends with the block."""
    program = _program()
    # Not pytest's directory: the pooler refuses to run as root, and that one is closed to others.
    directory = Path(tempfile.mkdtemp(prefix="onecommit-pgbouncer-"))
    try:
        directory.chmod(0o777)
        port = _write(directory, database, mode=mode, pool_size=pool_size)
        account = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
        command = [program, "-q", str(directory / "pgbouncer.ini")]
        with subprocess.Popen(command, **account) as process:
            try:
                dsn = f"postgresql://app@127.0.0.1:{port}/{database.name}"
                _wait(dsn, process)
                yield dsn
            finally:
                process.kill()  # a polite request waits for every client
    finally:
        shutil.rmtree(directory)


def _program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail("pgbouncer is missing")
    pytest.skip("pgbouncer is missing: install the system package")


def _write(directory: Path, database: Database, *, mode: str, pool_size: int) -> int:
    server = urlsplit(database.dsn)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = CONFIGURATION.format(
        name=database.name,
        host=server.hostname,
        port=server.port,
        user=server.username,
        password=server.password,
        listen=port,
        mode=mode,
        pool_size=pool_size,
        directory=directory,
    )
    file = directory / "pgbouncer.ini"
    file.write_text(text)
    file.chmod(0o644)
    return port


def _wait(dsn: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            psycopg.connect(dsn, prepare_threshold=None).close()
        except psycopg.OperationalError:
            assert process.poll() is None, "the pooler ended"
            assert time.monotonic() < deadline, "the pooler does not answer"
            time.sleep(0.02)  # it has no signal for being ready
        else:
            return
