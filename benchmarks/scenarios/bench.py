"""What every scenario is given: the server, the sizes, and a fresh database with the schema."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.adapters.contract import System
from benchmarks.database import Database, fresh_database
from benchmarks.server import Server

Measures = dict[str, float]
"""Figures by column; a column that does not apply to the system is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The server and the sizes of this run."""

    server: Server
    jobs: int
    """Jobs of one bulk enqueue and one drain."""
    seconds: float
    """Length of the windows that are measured by time."""
    pickups: int
    """Jobs whose pickup is timed."""
    limit: float
    """Seconds after which a slow drain or fill is cut and its rate taken as it stands."""
    sizes: tuple[int, ...]
    """Backlogs of the growth scenario."""
    items: int
    """Items of Work that are accepted and done."""
    producers: int
    """Tasks that accept Work at the same time, each on a connection of its own."""
    scopes: int
    """Scopes that the items of Work take turns in."""
    stores: tuple[int, ...]
    """Items of Work that are stored beforehand."""
    scope_counts: tuple[int, ...]
    """Numbers of scopes that are compared."""
    looks: int
    """Looks for Work that is due."""

    @asynccontextmanager
    async def database(self, adapter: System) -> AsyncIterator[Database]:
        """Open a fresh database with the adapter's schema installed."""
        async with fresh_database(self.server, f"bench_{adapter.name}") as database:
            await adapter.setup(database.dsn)
            yield database
