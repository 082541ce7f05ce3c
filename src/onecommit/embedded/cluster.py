"""The database cluster on disk: made once, checked at every start."""

import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from onecommit.domain.arguments import checked_text
from onecommit.embedded.account import ServerAccount
from onecommit.embedded.binaries import Binaries
from onecommit.embedded.directory import DataDirectory
from onecommit.embedded.failures import (
    DataDirectoryRefused,
    EmbeddedPostgresError,
    ServerRunning,
)
from onecommit.embedded.processes import command_line
from onecommit.errors import InvalidArgument

SUPERUSER = "postgres"

DEFAULT_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "shared_buffers": "128MB",
        "max_connections": "200",
        "wal_level": "replica",
        "timezone": "UTC",
        "lc_messages": "C",  # the launcher reads one message
        "log_line_prefix": "%m [%p] ",
        # After a crash one call instead of a thousand; macOS does not have it.
        **({"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}),
    }
)
# These make the server ours and local. They are given on the command line, where ALTER SYSTEM cannot reach.
RESERVED_SETTINGS = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "port",
        "unix_socket_directories",
        "unix_socket_group",
    }
)


def prepare_cluster(
    directory: DataDirectory, *, binaries: Binaries, account: ServerAccount, durable: bool
) -> None:
    """Initialize the cluster unless it exists, and check that these programs can run it."""
    if not directory.cluster.is_dir():
        _initialize(directory, binaries, account, durable=durable)
    _refuse_other_major(directory, binaries)
    _remove_stale_pid_file(directory.cluster)


def write_settings(path: Path, settings: Mapping[str, str]) -> None:
    """Write the configuration file: our defaults, overridden by the caller's settings."""
    lines = [
        f"{name} = {quoted(value)}\n" for name, value in {**DEFAULT_SETTINGS, **settings}.items()
    ]
    path.write_text("".join(lines))
    path.chmod(0o644)


def checked_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The caller's settings under lower-case names; refuses what cannot be set."""
    given: object = settings
    if not isinstance(given, Mapping):
        raise _refused("`settings` is not a mapping of names to values")
    checked = {}
    for name, value in given.items():
        parts = name.split(".") if isinstance(name, str) else [""]
        if not all(part.isidentifier() and part.isascii() for part in parts):
            raise _refused(f"{name!r} is not the name of a PostgreSQL setting")
        if name.lower() in RESERVED_SETTINGS:
            raise _refused(f"{name} is set by the embedded PostgreSQL itself")
        if "\n" in checked_text(value, field="settings"):
            raise _refused(f"the value of {name} is not one line of text")
        checked[name.lower()] = value
    return checked


def _refused(why: str) -> InvalidArgument:
    return InvalidArgument(why, field="settings")


def quoted(value: str) -> str:
    """A value as the configuration file wants it."""
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _initialize(
    directory: DataDirectory, binaries: Binaries, account: ServerAccount, *, durable: bool
) -> None:
    """Run initdb beside the final place and rename, so that a killed initdb leaves no half cluster."""
    target = directory.unfinished_cluster
    handed_over = directory.path / "initdb-password"
    shutil.rmtree(target, ignore_errors=True)
    handed_over.unlink(missing_ok=True)
    target.mkdir(mode=0o700)
    account.take(target)
    password = secrets.token_hex(24)
    try:
        _write_secret(handed_over, password)
        account.take(handed_over)
        _run_initdb(target, handed_over, binaries, account, durable=durable)
    finally:
        handed_over.unlink(missing_ok=True)
    _write_secret(directory.password_file, f"*:*:*:{SUPERUSER}:{password}")
    target.rename(directory.cluster)


def _run_initdb(
    target: Path, password_file: Path, binaries: Binaries, account: ServerAccount, *, durable: bool
) -> None:
    command = [
        str(binaries.program("initdb")),
        f"--pgdata={target}",
        f"--username={SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--no-instructions",
    ]
    if binaries.major >= 17:  # noqa: PLR2004 - the first with a provider that needs no system locale
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not durable:
        command.append("--no-sync")
    result = account.run(command)
    if result.returncode != 0:
        raise EmbeddedPostgresError(
            f"initdb failed: {' '.join(result.stderr.split())}",
            remedy="Mend what it names, then start again.",
        )


def _write_secret(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")


def _refuse_other_major(directory: DataDirectory, binaries: Binaries) -> None:
    major = (directory.cluster / "PG_VERSION").read_text().strip()
    if major != str(binaries.major):
        raise DataDirectoryRefused(
            f"{directory.path} holds a cluster of PostgreSQL {major}, these programs are {binaries.version}",
            remedy="Choose another data directory, or programs of that major version.",
        )


def _remove_stale_pid_file(cluster: Path) -> None:
    """Delete what a killed postmaster left.

    We hold the lock, so no server of ours runs here. PostgreSQL itself would refuse to start whenever
    the old process id belongs to any other process of this user by now, as after a container's restart.
    """
    pid_file = cluster / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
    except FileNotFoundError:
        return
    except ValueError:
        pid = 0
    if pid > 0 and str(cluster) in command_line(pid):
        raise ServerRunning(
            f"a server that was not started by this layer runs on {cluster} (process {pid})",
            remedy="Stop it first.",
        )
    pid_file.unlink()
