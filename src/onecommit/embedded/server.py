"""A server on a data directory, known by what its supervisor recorded, whoever started it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeAlias
from urllib.parse import quote

from onecommit.domain.queue import checked_name
from onecommit.embedded import supervisor
from onecommit.embedded.cluster import SUPERUSER
from onecommit.embedded.directory import DataDirectory, ServerRecord
from onecommit.embedded.failures import EmbeddedPostgresError
from onecommit.embedded.launcher import ADDRESS
from onecommit.embedded.processes import command_line
from onecommit.errors import InvalidArgument

StopMode: TypeAlias = Literal["fast", "immediate"]
STOP_SIGNALS = {"fast": signal.SIGTERM, "immediate": signal.SIGQUIT}
DEFAULT_DATABASE = "postgres"
# Of any installation: the one that stops a server need not be the one that started it.
SUPERVISOR = str(Path(*Path(supervisor.__file__).parts[-3:]))
# Longer than the supervisor takes to go from the mildest way of stopping to the last.
GONE_SECONDS = 120.0


def checked_mode(mode: StopMode) -> signal.Signals:
    """The signal that stops a server in this way."""
    if mode not in STOP_SIGNALS:
        raise InvalidArgument("`mode` is neither fast nor immediate", field="mode")
    return STOP_SIGNALS[mode]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where one server listens and who supervises it."""

    directory: DataDirectory
    record: ServerRecord

    @classmethod
    def find(cls, data_dir: str | os.PathLike[str]) -> Self | None:
        """The server that runs on this data directory, if one does."""
        directory = DataDirectory.at(data_dir)
        if not directory.is_ours or not directory.is_running:
            return None
        return cls.latest(directory)

    @classmethod
    def latest(cls, directory: DataDirectory) -> Self | None:
        """The server that was started last, running or not."""
        record = directory.record()
        return cls(directory=directory, record=record) if record else None

    @property
    def port(self) -> int:
        """TCP port on 127.0.0.1."""
        return self.record.port

    @property
    def pid(self) -> int | None:
        """Process id of the postmaster; None while there is none."""
        try:
            return int((self.directory.cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None

    @property
    def major(self) -> int:
        """The server's major version."""
        return int((self.directory.cluster / "PG_VERSION").read_text())

    def dsn(self, dbname: str = DEFAULT_DATABASE) -> str:
        """A connection string for the superuser. It holds the password."""
        database = quote(checked_name(dbname, field="dbname"), safe="")
        password = self.directory.password()
        return f"postgresql://{SUPERUSER}:{password}@{ADDRESS}:{self.port}/{database}"

    def connection_environment(self, dbname: str) -> dict[str, str]:
        """The same as variables for PostgreSQL's own programs; the password stays in its file."""
        return {
            "PGHOST": ADDRESS,
            "PGPORT": str(self.port),
            "PGUSER": SUPERUSER,
            "PGPASSFILE": str(self.directory.password_file),
            "PGDATABASE": dbname,
        }

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server and return when no process of it is left; the data stays."""
        self.end(checked_mode(mode))

    def end(self, number: signal.Signals) -> None:
        """Ask the supervisor to stop the server and wait until no process of it is left."""
        if SUPERVISOR in command_line(self.record.supervisor):
            os.kill(self.record.supervisor, number)
        deadline = time.monotonic() + GONE_SECONDS
        while self.directory.is_running and self.directory.record() == self.record:
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"the server on {self.directory.path} did not stop",
                    remedy=f"Look into {self.directory.log_file}.",
                )
            time.sleep(0.01)
