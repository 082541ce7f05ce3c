"""Each attempt's connection is cut around its COMMIT, at a point of its own; each invoice is settled exactly once."""

import asyncio
import random
from collections import Counter
from datetime import timedelta

import psycopg
import pytest

from onecommit.app.context import CallerOwnedJobContext
from onecommit.domain.job import JobState
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.telemetry.events import CompletedThenRaised, StaleAttempt

from tests.proxy import Proxy

pytestmark = pytest.mark.pg

INVOICES = 130
ENOUGH_CUTS = 200
ROLLED_BACK = ("before it is forwarded", "inside it")
"""Cut there, the server never hears of the commit."""
COMMITTED = ("once it is forwarded", "before the reply is delivered", "inside the reply")
POINTS = ROLLED_BACK + COMMITTED


class CommitCutter(Proxy):
    """Cuts every connection that sends a COMMIT, at one point after the other."""

    def __init__(self, dsn: str, *, seed: int) -> None:
        super().__init__(dsn)
        self.cuts: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._next: list[str] = []

    def _draw(self) -> str:
        """Every point equally often, in no order."""
        if not self._next:
            self._next = self._random.sample(POINTS, len(POINTS))
        point = self._next.pop()
        self.cuts[point] += 1
        return point

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection(self._url.hostname, self._url.port)
        self._writers |= {writer, upstream[1]}
        link = Link()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, upstream[1], link))
                group.create_task(self._answer(upstream[0], writer, link))
        except* ConnectionError:
            pass
        finally:
            for side in (writer, upstream[1]):
                self._writers.discard(side)
                side.transport.abort()

    async def _forward(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, link: "Link"
    ) -> None:
        while data := await source.read(65_536):
            if b"COMMIT" in data:
                link.point = self._draw()
            match link.point:
                case "before it is forwarded":
                    raise ConnectionResetError
                case "inside it":
                    target.write(data[: self._random.randrange(1, len(data))])
                    raise ConnectionResetError
            target.write(data)
            await target.drain()
            if link.point == "once it is forwarded":
                raise ConnectionResetError
        raise ConnectionResetError

    async def _answer(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, link: "Link"
    ) -> None:
        while data := await source.read(65_536):
            match link.point:
                case "before the reply is delivered":
                    raise ConnectionResetError
                case "inside the reply":
                    target.write(data[: self._random.randrange(1, len(data))])
                    await target.drain()
                    raise ConnectionResetError
            target.write(data)
            await target.drain()
        raise ConnectionResetError


class Link:
    """One connection, and where it will be cut."""

    point: str | None = None


async def test_two_hundred_connections_cut_around_their_commit_lose_nothing_and_settle_nothing_twice(
    app, worker_of, events, database
):
    """No attempt ever hears that its commit was made; the store's evidence alone decides."""
    async with CommitCutter(database.dsn, seed=7) as cutter:
        ledger = await psycopg.AsyncConnection.connect(database.dsn, autocommit=True)
        await ledger.execute("create table settlement (invoice int not null, attempt int not null)")

        @app.caller_owned_job(retry=Retry(first=timedelta(0)), max_attempts=100)
        async def settle(ctx: CallerOwnedJobContext, invoice: int) -> FinalizationReceipt:
            async with (
                await psycopg.AsyncConnection.connect(cutter.dsn) as connection,
                connection.transaction(),
            ):
                await connection.execute(
                    "insert into settlement values (%s, %s)", (invoice, ctx.attempt)
                )
                return await ctx.complete_in_tx(connection)

        jobs = await settle.enqueue_many([{"invoice": number} for number in range(INVOICES)])
        worker = await worker_of()
        await worker.drain()

        assert cutter.cuts.total() >= ENOUGH_CUTS
        assert min(cutter.cuts[point] for point in POINTS) >= ENOUGH_CUTS // 8
        rows = await (await ledger.execute("select invoice, attempt from settlement")).fetchall()
        await ledger.close()
    assert sorted(invoice for invoice, _ in rows) == list(range(INVOICES))
    views = [await app.jobs.get(job.job_id) for job in jobs]
    assert {view.state for view in views} == {JobState.COMPLETED}
    # The one row of an invoice was written by the attempt that completed its job.
    assert sorted(rows) == sorted((view.args["invoice"], view.attempt) for view in views)
    assert sum(view.attempt for view in views) == cutter.cuts.total()
    assert len(events.of(CompletedThenRaised)) == INVOICES
    assert not events.of(StaleAttempt)
