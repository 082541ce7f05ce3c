"""A worker whose ring was tampered with truncates nothing, says so, and does everything else."""

import asyncio

import pytest

from onecommit.app.app import App
from onecommit.app.context import JobContext
from onecommit.telemetry.events import LoopFailed

from tests.attacks.intruders import Target
from tests.worker.harness import Events, eventually, start_worker

pytestmark = pytest.mark.pg

CLOSED = (
    "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0'"
)


async def test_a_worker_outlives_a_ring_that_was_tampered_with(target: Target):
    """It leads, promotes and runs jobs, retries and all; the loop that tends the ring reports each refusal by its class."""
    store_id = target.value("select store_id from onecommit.store_status()")
    dsn = target.store.login("producer", "executor", "maintenance")
    events = Events()
    ran: list[int] = []
    async with App(dsn, store_id=store_id, epoch=target.epoch) as app:

        @app.job(queue="q", max_attempts=2)
        async def note(ctx: JobContext, n: int) -> None:
            if ctx.attempt == 1:
                raise ValueError("once")
            ran.append(n)

        tender = target.engine("producer", "executor", "maintenance")
        tender.complete(tender.take(3))
        target.do(CLOSED)
        assert tender.tend()[0] == "rotate"
        tender.retire()
        target.do(
            "update onecommit.ring set chapter_lifetime = '1 day'",
            "alter table onecommit.claim_1 enable row level security",
        )
        worker = await start_worker(app, events)
        try:
            failed = await events.wait_for(LoopFailed)
            for n in range(3):
                await note.enqueue(n=n)
                await eventually(lambda n=n: n in ran, what="a job that failed once was retried")
            assert (failed.loop, failed.failure) == ("maintenance", "StoreDamaged")
            assert target.value("select count(*) from only onecommit.completion_1") == 3
            assert target.value("select reclaimed from onecommit.ring") == 0
            target.do("alter table onecommit.claim_1 disable row level security")
            async with asyncio.timeout(60):
                while target.value("select reclaimed from onecommit.ring") == 0:
                    await asyncio.sleep(0.05)
        finally:
            await worker.stop()
