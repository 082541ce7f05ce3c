"""Find the adapters that can be imported here, and say why the others cannot."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

JOB_SYSTEMS = ("onecommit", "bare", "pgmq", "pgqueuer", "awa", "oban", "procrastinate")
WORK_SYSTEMS = ("onecommit", "dbos", "awa")
NAMES = tuple(dict.fromkeys(JOB_SYSTEMS + WORK_SYSTEMS))


def modules(names: Iterable[str], *, jobs: bool) -> dict[str, str]:
    """Return the module of each named system that has jobs, or Work."""
    known, kind = (JOB_SYSTEMS, "adapter") if jobs else (WORK_SYSTEMS, "work")
    return {name: f"benchmarks.adapters.{name}_{kind}" for name in names if name in known}


def load(module: str) -> Any:
    """Import one adapter; ImportError when its package is not installed."""
    return importlib.import_module(module).ADAPTER


def load_all(modules: dict[str, str]) -> tuple[list[Any], dict[str, str]]:
    """Return the adapters that import and, by name, the reason for each that does not."""
    present: list[Any] = []
    absent: dict[str, str] = {}
    for name, module in modules.items():
        try:
            present.append(load(module))
        except ImportError as error:
            absent[name] = str(error)
    return present, absent
