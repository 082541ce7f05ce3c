"""The operating-system user that the server's programs run as."""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypedDict

from onecommit.embedded.failures import EmbeddedPostgresError

# initdb insists on a name for its user id, so an unnamed free id will not do. `nobody` owns no files;
# `postgres` would, wherever the distribution's own server is installed, and comes second for that reason.
UNPRIVILEGED = ("nobody", "postgres")

# What a server needs of the caller's environment. The rest may hold secrets, and PGPORT and the like mislead.
KEPT_VARIABLES = ("PATH", "TMPDIR")
KEPT_PREFIXES = ("LD_", "DYLD_", "FAKETIME")


class Identity(TypedDict, total=False):
    """The arguments of `subprocess.Popen` that change the user."""

    user: int
    group: int
    extra_groups: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccount:
    """Who runs the server: the caller, or an unprivileged user when the caller is root."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def choose(cls) -> Self:
        """PostgreSQL refuses root; everybody else runs it as himself."""
        if os.geteuid() != 0:
            return cls()
        for name in UNPRIVILEGED:
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(uid=entry.pw_uid, gid=entry.pw_gid).tried()
        raise EmbeddedPostgresError(
            "PostgreSQL refuses to run as root, and this system has no unprivileged user for it",
            remedy=f"Run as an ordinary user, or add one of the users {', '.join(UNPRIVILEGED)}.",
        )

    def tried(self) -> Self:
        """Itself, after starting a program: a container may deny the change of user even to root."""
        try:
            self.run(["/bin/sh", "-c", ":"])
        except OSError as error:
            raise EmbeddedPostgresError(
                f"this process is root but may not start programs as user id {self.uid}",
                remedy="Run as an ordinary user, or allow the container CAP_SETUID and CAP_SETGID.",
            ) from error
        return self

    @property
    def is_caller(self) -> bool:
        """Whether the server runs as the user who starts it."""
        return self.uid is None

    def identity(self) -> Identity:
        """Arguments for `subprocess.Popen`."""
        if self.uid is None or self.gid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def take(self, path: Path) -> None:
        """Give a path inside one of our own directories to the server's user."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def reaches(self, directory: Path) -> bool:
        """Whether the server's user can enter the directory; tried, so that access lists count too."""
        if self.is_caller:
            return os.access(directory, os.X_OK)
        entered = self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)])
        return entered.returncode == 0

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a program as the server's user and collect what it prints."""
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=server_environment(os.environ),
            **self.identity(),
        )


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a server's program is given, with messages in English."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }
    return {**kept, "LC_ALL": "C"}
