"""What the manifest of routines says of capabilities; it is read when it is first asked for."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

_OWNER = "owner"


@cache
def manifest() -> Mapping[str, Mapping[str, Any]]:
    """capabilities.toml: routines by area, and under `tables` what a role needs beside EXECUTE."""
    text = resources.files("onecommit").joinpath("sql", "capabilities.toml").read_text("utf-8")
    return tomllib.loads(text)


def routine_entries() -> Mapping[str, Mapping[str, Any]]:
    """The entry of every routine by its name."""
    return {
        name: entry
        for area, entries in manifest().items()
        if area != "tables"
        for name, entry in entries.items()
    }


@cache
def all_capabilities() -> frozenset[str]:
    """The capabilities that a role can have."""
    granted = {each for entry in routine_entries().values() for each in entry["grants"]}
    return frozenset(granted - {_OWNER})


def capabilities_for(routine: str) -> tuple[str, ...]:
    """Those of which any lets a login call the routine; empty if only the owner may, or it is not known."""
    granted = routine_entries().get(routine, {}).get("grants", ())
    return tuple(each for each in granted if each != _OWNER)
