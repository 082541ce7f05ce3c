"""The processes of a server, seen from outside."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

PATIENCE_SECONDS = 30.0
PROC = Path("/proc")


def eventually(holds: Callable[[], object], *, what: str) -> None:
    """Return as soon as something holds; fail if that takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE_SECONDS:.0f} s: {what}")
        time.sleep(0.01)


def server_processes(data_dir: Path) -> dict[int, str]:
    """Every live process that works inside the data directory, with its title."""
    found = {}
    for entry in PROC.glob("[0-9]*"):
        try:
            inside = str((entry / "cwd").readlink()).startswith(str(data_dir))
            title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # gone, or another user's
            continue
        if inside:
            found[int(entry.name)] = title
    return found


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Owner:
    """Another Python process that runs an embedded server; it says `ready` and then does as told."""

    def __init__(self, program: str, *, python: str = sys.executable, **options) -> None:
        self.process = subprocess.Popen(
            [python, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        first = self.read()
        assert first.startswith("ready"), f"the owner failed: {first}"
        self.data_dir = Path(first.split()[1])
        self.supervisor = int(first.split()[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def read(self) -> str:
        """The next line it prints."""
        return self.process.stdout.readline().strip()

    def nothing_is_left(self) -> bool:
        """Whether its supervisor and every process of its server are gone."""
        return not server_processes(self.data_dir) and not is_alive(self.supervisor)
