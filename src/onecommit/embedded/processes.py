"""What the system says about a process that is not our child."""

import subprocess
from pathlib import Path

PROC = Path("/proc")


def command_line(pid: int) -> str:
    """The words a process was started with, separated by spaces; empty if there is no such process."""
    if (PROC / "self").exists():
        try:
            raw = (PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            return ""
        return raw.replace(b"\0", b" ").decode(errors="replace")
    listed = subprocess.run(
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
    )
    return listed.stdout
