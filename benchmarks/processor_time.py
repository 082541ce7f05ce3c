"""Processor time of the server's processes and of ours, which other load on the machine hardly changes."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _CHILDREN_SYSTEM = 1, 11, 14
"""Fields of /proc/<pid>/stat, counted behind the program's name."""


def server_seconds(postmaster: int) -> float | None:
    """Return the time used by a postmaster and its processes, ended ones included; Linux only."""
    if not Path("/proc/self/stat").exists():
        return None
    ticks = 0
    for directory in Path("/proc").iterdir():
        fields = _fields(directory) if directory.name.isdecimal() else []
        if not fields:
            continue
        if int(directory.name) == postmaster:
            ticks += sum(map(int, fields[_USER : _CHILDREN_SYSTEM + 1]))
        elif int(fields[_PARENT]) == postmaster:
            ticks += sum(map(int, fields[_USER : _USER + 2]))
    return ticks / _TICKS


def process_seconds(pid: int) -> float | None:
    """Return the time used by one process and all its threads; Linux only."""
    fields = _fields(Path("/proc") / str(pid))
    return sum(map(int, fields[_USER : _USER + 2])) / _TICKS if fields else None


def _fields(process: Path) -> list[str]:
    """Return what stat says behind the parenthesis of the program's name; nothing if it ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
