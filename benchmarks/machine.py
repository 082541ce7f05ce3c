"""Describe the machine and the versions a run was made with."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psycopg

from benchmarks.adapters.contract import System
from benchmarks.server import SETTINGS, Server

_LIBRARIES = ("psycopg", "asyncpg", "uvloop")


def describe(server: Server, adapters: list[System]) -> dict[str, object]:
    """Return processor, memory, load, interpreter, server and package versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "load_average": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "postgresql": _postgresql(server),
        "settings": SETTINGS,
        "commit": _commit(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "systems": _systems(adapters),
    }


def _systems(adapters: list[System]) -> dict[str, dict[str, object]]:
    """Return package, version and settings by name; a system with jobs and Work is driven in two ways."""
    driven: dict[str, list[str]] = {}
    for adapter in adapters:
        driven.setdefault(adapter.name, []).append(adapter.settings)
    return {
        adapter.name: {
            "package": adapter.distribution,
            "version": _version(adapter.distribution),
            "driven": driven[adapter.name],
        }
        for adapter in adapters
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _postgresql(server: Server) -> str:
    with psycopg.connect(server.dsn()) as connection:
        row = connection.execute("show server_version").fetchone()
    return str(row[0]) if row else "unknown"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return result.stdout.strip()


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
