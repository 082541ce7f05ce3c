"""How much a run measures: the options of the command line, and the Bench they make."""

from __future__ import annotations

import argparse

from benchmarks.scenarios.bench import Bench
from benchmarks.server import Server

_BACKLOGS = [10_000, 100_000, 1_000_000]
_STORES = [1_000, 30_000, 1_000_000]
_SCOPES = [1, 30, 1_000]


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add the options that `bench_of` reads."""
    add = parser.add_argument
    add("--jobs", type=int, default=50_000, help="jobs of a bulk and a drain")
    add("--seconds", type=float, default=3.0, help="length of timed windows")
    add("--pickups", type=int, default=200, help="jobs whose pickup is timed")
    add("--limit", type=float, default=60.0, help="seconds a drain may take")
    add("--growth", nargs=3, type=int, default=_BACKLOGS, metavar="JOBS")
    add("--items", type=int, default=5_000, help="items of Work to accept and do")
    add("--producers", type=int, default=8, help="tasks that accept Work at once")
    add("--scopes", type=int, default=10, help="scopes that Work takes turns in")
    add("--stores", nargs=3, type=int, default=_STORES, metavar="ITEMS")
    add("--scope-counts", nargs=3, type=int, default=_SCOPES, metavar="SCOPES")
    add("--looks", type=int, default=2_000, help="looks for Work that is due")


def bench_of(server: Server, options: argparse.Namespace) -> Bench:
    """Return what the options say."""
    return Bench(
        server=server,
        jobs=options.jobs,
        seconds=options.seconds,
        pickups=options.pickups,
        limit=options.limit,
        sizes=tuple(options.growth),
        items=options.items,
        producers=options.producers,
        scopes=options.scopes,
        stores=tuple(options.stores),
        scope_counts=tuple(options.scope_counts),
        looks=options.looks,
    )
