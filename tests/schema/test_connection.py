"""The connection of an owner: direct, bounded, and silent about its DSN."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from onecommit import errors
from onecommit.embedded.account import ServerAccount
from onecommit.schema import SchemaState, apply, initialize_epoch, status
from onecommit.schema.session import _with_defaults

SECRETS = "user=hush password=hush dbname=hush"


def listener() -> socket.socket:
    """A port of this machine."""
    return socket.create_server(("127.0.0.1", 0))


def test_a_server_that_is_not_there_is_a_short_error():
    """The error says what to check and repeats nothing of the DSN."""
    with closing(listener()) as free:
        port = free.getsockname()[1]
    with pytest.raises(errors.StoreUnavailable, match="could not be reached") as refused:
        status(f"host=127.0.0.1 port={port} {SECRETS}")
    assert "hush" not in str(refused.value)
    assert str(port) not in str(refused.value)


def test_a_server_that_accepts_and_never_answers_is_given_up_in_time():
    """connect_timeout bounds the whole of the greeting, not only the TCP handshake."""
    with closing(listener()) as silent:
        port = silent.getsockname()[1]
        started = time.monotonic()
        with pytest.raises(errors.StoreUnavailable, match="did not answer in time") as refused:
            apply(f"host=127.0.0.1 port={port} connect_timeout=2 {SECRETS}")
    assert time.monotonic() - started < 20
    assert "hush" not in str(refused.value)


def test_a_dsn_that_is_no_dsn_is_not_quoted_anywhere():
    """Libpq quotes what it cannot parse; neither our error nor its cause does."""
    with pytest.raises(errors.StoreUnavailable, match="not a valid connection string") as refused:
        status("host=127.0.0.1 hush")
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_the_defaults_give_way_to_the_dsn_and_to_the_environment(monkeypatch):
    """Five seconds to connect and a name in pg_stat_activity, unless somebody chose otherwise."""
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    monkeypatch.delenv("PGAPPNAME", raising=False)
    ours = conninfo_to_dict(_with_defaults("host=x"))
    assert (ours["connect_timeout"], ours["application_name"]) == ("5", "onecommit schema")
    theirs = conninfo_to_dict(
        _with_defaults("postgresql://x/?connect_timeout=9&application_name=a")
    )
    assert (theirs["connect_timeout"], theirs["application_name"]) == ("9", "a")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "7")
    assert "connect_timeout" not in conninfo_to_dict(_with_defaults("host=x"))


@pytest.fixture(params=["transaction", "session"])
def pooled_dsn(request, dsn: str) -> Iterator[str]:
    """The same database through pgbouncer."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    server = conninfo_to_dict(dsn)
    with closing(listener()) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as folder:
        account = ServerAccount.choose()
        config = Path(folder) / "pgbouncer.ini"
        config.write_text(
            "[databases]\n"
            f"* = host={server['host']} port={server['port']}"
            f" user={server['user']} password={server.get('password', '')}\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\nauth_type = any\n"
            f"listen_port = {port}\npool_mode = {request.param}\n"
            "ignore_startup_parameters = extra_float_digits\n"
        )
        account.take(Path(folder))
        account.take(config)
        pooler = subprocess.Popen(
            [program, "--quiet", config], stderr=subprocess.DEVNULL, **account.identity()
        )
        try:
            pooled = f"host=127.0.0.1 port={port} user=postgres dbname={server['dbname']}"
            wait_until_open(pooled)
            yield pooled
        finally:
            pooler.terminate()
            pooler.wait()


def wait_until_open(dsn: str) -> None:
    """Return once a connection succeeds."""
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
        else:
            return


@pytest.mark.pg
def test_a_pooler_is_refused_for_changes_and_fine_for_the_status(dsn, pooled_dsn):
    """A session lock taken through a pooler would stay behind with a stranger's transaction."""
    with pytest.raises(errors.SchemaError, match=r"pooler.*direct connection.*host and port"):
        apply(pooled_dsn)
    assert status(dsn).state is SchemaState.MISSING
    apply(dsn)
    with pytest.raises(errors.SchemaError, match="pooler"):
        initialize_epoch(pooled_dsn, actor="ada", reason="test")
    assert status(pooled_dsn) == status(dsn)


@pytest.mark.pg
def test_nothing_stays_set_in_a_pooled_session(pooled_dsn):
    """The server session that served a refused run or a status goes to the application next, as it was."""
    settings = (
        "select name, setting from pg_settings where source = 'session'"
        " and name not in ('application_name', 'transaction_isolation', 'transaction_read_only')"
    )
    with psycopg.connect(pooled_dsn) as before:
        expected = before.execute(settings).fetchall()
    status(pooled_dsn)
    with pytest.raises(errors.SchemaError, match="pooler"):
        apply(pooled_dsn)
    with psycopg.connect(pooled_dsn) as after:
        assert after.execute(settings).fetchall() == expected
