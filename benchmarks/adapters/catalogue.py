"""Find the adapters that can be imported here, and say why the others cannot."""

from __future__ import annotations

import importlib
from typing import cast

from benchmarks.adapters.contract import Adapter

NAMES = ("onecommit", "bare", "pgmq", "pgqueuer", "awa", "oban", "procrastinate")


def load(name: str) -> Adapter:
    """Import one adapter; ImportError when its package is not installed."""
    module = importlib.import_module(f"benchmarks.adapters.{name}_adapter")
    return cast("Adapter", module.ADAPTER)


def load_all(names: list[str]) -> tuple[list[Adapter], dict[str, str]]:
    """Return the adapters that import and, by name, the reason for each that does not."""
    present: list[Adapter] = []
    absent: dict[str, str] = {}
    for name in names:
        try:
            present.append(load(name))
        except ImportError as error:
            absent[name] = str(error)
    return present, absent
