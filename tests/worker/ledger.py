"""The application's own table, and the handler's transaction that writes to it."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from onecommit.app.context import CallerOwnedJobContext


@pytest.fixture
async def ledger(database) -> AsyncIterator["Ledger"]:
    """The application's own table and connections."""
    async with await psycopg.AsyncConnection.connect(
        database.observer_dsn, autocommit=True
    ) as connection:
        await connection.execute("create table if not exists ledger (job bigint not null)")
        yield Ledger(database.dsn, connection)


class Ledger:
    def __init__(self, dsn: str, connection: psycopg.AsyncConnection) -> None:
        self.dsn = dsn
        self.connection = connection

    async def settle(self, ctx: CallerOwnedJobContext, *, dsn: str | None = None):
        """Write one row and complete the attempt, in one commit."""
        async with (
            await psycopg.AsyncConnection.connect(dsn or self.dsn) as connection,
            connection.transaction(),
        ):
            await connection.execute("insert into ledger values (%s)", (ctx.job_id,))
            return await ctx.complete_in_tx(connection)

    async def rows(self, job: Any) -> int:
        cursor = await self.connection.execute(
            "select count(*) from ledger where job = %s", (job.job_id,)
        )
        return (await cursor.fetchone())[0]
