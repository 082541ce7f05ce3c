"""Bare psycopg connections for the adapters that speak SQL themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg

Connection = psycopg.AsyncConnection[Any]


async def connect(dsn: str) -> Connection:
    """Open an autocommitting connection that prepares every statement at first use."""
    return await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0)


class Connections:
    """A free list of connections, cheaper than a pool and enough for tasks that never outnumber it."""

    def __init__(self, free: list[Connection]) -> None:
        self._free = free

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """Lend a connection."""
        connection = self._free.pop()
        try:
            yield connection
        finally:
            self._free.append(connection)


@asynccontextmanager
async def open_connections(dsn: str, count: int) -> AsyncIterator[Connections]:
    """Open `count` connections and close them at the end."""
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(await connect(dsn)) for _ in range(count)]
        yield Connections(opened)


async def scalar(dsn: str, query: str) -> int:
    """Run one query on a connection of its own and return the only value."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        row = await (await connection.execute(query.encode())).fetchone()
        assert row is not None
        return int(row[0])
