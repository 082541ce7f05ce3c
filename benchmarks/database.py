"""A fresh database per measurement, and the counters PostgreSQL keeps about it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.server import Server
from benchmarks.waiting import wait_until

_DEAD = """
    select coalesce(sum(n_tup_upd + n_tup_del), 0), coalesce(sum(n_dead_tup), 0)
    from pg_stat_user_tables
"""
_TRANSACTIONS = "select xact_commit from pg_stat_database where datname = current_database()"
_OTHERS = """
    select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
"""

_SESSION_END_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadTuples:
    """Row versions that were made obsolete, and those that no vacuum has removed yet."""

    made: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One database of the server with an administrator's connection to it."""

    server: Server
    name: str
    admin: psycopg.AsyncConnection[Any]

    @property
    def dsn(self) -> str:
        return self.server.dsn(self.name)

    async def execute(self, query: str) -> list[tuple[Any, ...]]:
        """Run a statement as the administrator."""
        cursor = await self.admin.execute(query.encode())
        return await cursor.fetchall() if cursor.description else []

    async def log_all_statements(self) -> None:
        """Have every session that starts from now on log each statement."""
        await self.execute(f"alter database {self.name} set log_statement = 'all'")

    async def settle(self) -> None:
        """Give every system the same start: fresh planner statistics and no checkpoint due."""
        await self.execute("analyze")
        await self.execute("checkpoint")

    async def wal_position(self) -> int:
        """Return how many bytes of WAL the server has written."""
        [(position,)] = await self.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        return int(position)

    async def transactions(self) -> int:
        """Return how many transactions were committed, after waiting as for the dead tuples."""
        await self._wait_for_counters()
        [(committed,)] = await self.execute(_TRANSACTIONS)
        return int(committed)

    async def dead_tuples(self) -> DeadTuples:
        """Read the counters, after waiting for the other sessions to end and report theirs."""
        await self._wait_for_counters()
        [(made, left)] = await self.execute(_DEAD)
        return DeadTuples(made=int(made), left=int(left))

    async def _wait_for_counters(self) -> None:
        if not await wait_until(self._is_alone, deadline=time.monotonic() + _SESSION_END_SECONDS):
            raise RuntimeError(f"Sessions of {self.name} are still open; its counters are behind.")
        await self.execute("select pg_stat_clear_snapshot()")

    async def _is_alone(self) -> bool:
        [(others,)] = await self.execute(_OTHERS)
        return not others

    @asynccontextmanager
    async def held_snapshot(self) -> AsyncIterator[None]:
        """Keep a REPEATABLE READ transaction with a snapshot open on another connection."""
        async with await psycopg.AsyncConnection.connect(self.dsn) as reader:
            await reader.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            await reader.execute("select count(*) from pg_class")
            yield


@asynccontextmanager
async def fresh_database(server: Server, name: str) -> AsyncIterator[Database]:
    """Create a database and drop it at the end."""
    async with await psycopg.AsyncConnection.connect(server.dsn(), autocommit=True) as postgres:
        await postgres.execute(f"drop database if exists {name} with (force)".encode())
        await postgres.execute(f"create database {name}".encode())
        try:
            async with await psycopg.AsyncConnection.connect(
                server.dsn(name), autocommit=True
            ) as admin:
                yield Database(server=server, name=name, admin=admin)
        finally:
            await postgres.execute(f"drop database if exists {name} with (force)".encode())
