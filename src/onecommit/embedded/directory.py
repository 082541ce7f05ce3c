"""One data directory: what lies in it, how it is known as ours, and who holds it."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from onecommit.embedded.account import ServerAccount
from onecommit.embedded.binaries import make_public_directory
from onecommit.embedded.failures import (
    DataDirectoryRefused,
    EmbeddedPostgresError,
    ServerRunning,
)
from onecommit.errors import InvalidArgument

MARKER_TEXT = (
    "This directory belongs to the embedded PostgreSQL of Onecommit.\n"
    "Do not remove this file: without it the directory is refused.\n"
)
STATE = Path("/var/lib/onecommit")
TEMPORARY_PREFIX = "onecommit-"
# A socket's path has to fit into 104 bytes on macOS, 108 on Linux; the name takes 18, the random part 20.
LONGEST_SCRATCH = 64
LOCK_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """What the latest supervisor left for other processes."""

    supervisor: int
    port: int
    socket_directory: Path


def checked_path(path: object, *, field: str) -> Path:
    """The path, if the file system can have it; else an error that names the field."""
    refused = InvalidArgument(f"`{field}` is not the path of a file or directory", field=field)
    if not isinstance(path, str | os.PathLike):
        raise refused
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise refused from None
    if not encoded or b"\0" in encoded:
        raise refused
    return Path(os.fsdecode(encoded))


class DataDirectory:
    """The paths of one server. The owner is the caller; only the cluster belongs to the server's user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marker = path / "onecommit-embedded"
        self.lock_file = path / "server.lock"
        self.password_file = path / "pgpass"
        self.settings_file = path / "postgresql.conf"
        self.log_file = path / "server.log"
        self.cluster = path / "cluster"
        self.unfinished_cluster = path / "cluster.unfinished"

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Self:
        """The one that a caller names, if it can be one."""
        return cls(checked_path(path, field="data_dir").resolve())

    @property
    def is_ours(self) -> bool:
        """Whether this layer made the directory."""
        try:
            return self.marker.is_file()
        except PermissionError as error:
            raise self._of_another_user() from error

    def _of_another_user(self) -> DataDirectoryRefused:
        return DataDirectoryRefused(
            f"{self.path} belongs to another user",
            remedy="Run as that user, or choose another data directory.",
        )

    def claim(self, account: ServerAccount) -> None:
        """Make the directory ours, or refuse it before anything is touched."""
        try:
            self._refuse_foreign()
            self._refuse_unreachable(account)
            self._make(account)
        except OSError as error:
            raise DataDirectoryRefused(
                f"{self.path} cannot be used: {error.strerror}",
                remedy="Choose another data directory.",
            ) from error

    def _make(self, account: ServerAccount) -> None:
        """The parents stay as they are; only the cluster inside will belong to the server's user."""
        if account.is_caller:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
        else:
            make_public_directory(self.path.parent)
            self.path.mkdir(exist_ok=True)
            self.path.chmod(0o711)
        self.marker.write_text(MARKER_TEXT)
        (self.path / ".gitignore").write_text("*\n")

    def _refuse_foreign(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise DataDirectoryRefused(
                f"{self.path} is not a directory", remedy="Choose another data directory."
            )
        if self.path.stat().st_uid != os.geteuid():
            raise self._of_another_user()
        # The marker is asked for last: a process that claims the directory right now writes it first.
        if any(self.path.iterdir()) and not self.is_ours:
            raise DataDirectoryRefused(
                f"{self.path} is not empty and was not made by the embedded PostgreSQL",
                remedy="Choose an empty or new data directory.",
            )

    def _refuse_unreachable(self, account: ServerAccount) -> None:
        existing = next(folder for folder in self.path.parents if folder.is_dir())
        if not account.reaches(existing):
            raise DataDirectoryRefused(
                f"the server cannot run as root, and the user it runs as cannot enter {existing}",
                remedy="Choose a data directory outside of private directories.",
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the directory. A server started meanwhile inherits the lock and keeps it until it is gone."""
        descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._acquire(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _acquire(self, descriptor: int) -> None:
        """Wait a little: the server of a killed process needs a moment to shut down."""
        deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise ServerRunning(f"a server already runs on {self.path}")
            time.sleep(0.02)

    @property
    def is_running(self) -> bool:
        """Whether any process of a server, or one that starts it, holds the directory."""
        try:
            descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except PermissionError as error:
            raise self._of_another_user() from error
        try:
            return not _try_lock(descriptor)
        finally:
            os.close(descriptor)

    def record(self) -> ServerRecord | None:
        """What the latest supervisor wrote, whether it still runs or not."""
        try:
            written = json.loads(self.lock_file.read_bytes())
        except (OSError, ValueError):
            return None
        return ServerRecord(
            supervisor=int(written["supervisor"]),
            port=int(written["port"]),
            socket_directory=Path(written["socket_directory"]),
        )

    def forget_sockets(self) -> None:
        """Delete the socket directory that a killed supervisor left; call it with the lock held."""
        record = self.record()
        if record and record.socket_directory.name.startswith(TEMPORARY_PREFIX):
            shutil.rmtree(record.socket_directory, ignore_errors=True)

    def password(self) -> str:
        """The superuser's password."""
        return self.password_file.read_text().strip().rpartition(":")[2]

    def remove(self) -> None:
        """Delete the directory, if it is ours."""
        if self.is_ours:
            shutil.rmtree(self.path, ignore_errors=True)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def default_data_dir() -> Path:
    """Where the command line keeps the server of this directory, for root also if the server cannot enter it."""
    here = Path.cwd()
    if ServerAccount.choose().reaches(here):
        return here / ".onecommit" / "postgresql"
    return STATE / hashlib.sha256(str(here).encode()).hexdigest()[:16]


def make_temporary(account: ServerAccount) -> Path:
    """A new private directory with a short path, in a place that the server's user can enter."""
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):  # noqa: S108 - mkdtemp follows
        if len(parent) <= LONGEST_SCRATCH and account.reaches(Path(parent)):
            return Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))
    raise EmbeddedPostgresError(
        "there is no directory for temporary files that the server's user can enter",
        remedy="Set TMPDIR to one.",
    )
