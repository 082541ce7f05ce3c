"""`Worker.drain` returns when nothing is left that can run now, whoever holds it at the moment."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from onecommit.app.context import JobContext
from onecommit.calls.call import Call
from onecommit.calls.maintenance import PROMOTE_JOBS
from onecommit.domain.job import JobState
from onecommit.domain.retry import Retry
from onecommit.telemetry.events import Reconnecting
from onecommit.worker import Worker

from tests.observe import PATIENCE_SECONDS, PAUSE_SECONDS
from tests.worker.harness import Events

pytestmark = pytest.mark.pg


PROMOTE = """
select promoted from onecommit.promote_jobs(10, (select active_epoch from onecommit.store_status()))
"""
CANCEL = """
select from onecommit.cancel_jobs(array[%s]::bigint[], 'ada', 'test', (select active_epoch from onecommit.store_status()))
"""
TERMINATE = """
select pg_terminate_backend(pid) from pg_stat_activity where %s = any (pg_blocking_pids(pid))
"""
BLOCKED = "select exists (select from pg_stat_activity where %s = any (pg_blocking_pids(pid)))"


class Drain:
    """A drain under way, and how often it has looked for what is due."""

    def __init__(self, worker: Worker) -> None:
        insistence = worker._machinery.insistence
        self._run = insistence.run
        insistence.run = self._counted
        self._looks = 0
        self._looked = asyncio.Event()
        self.task = asyncio.create_task(worker.drain())

    async def _counted(self, call: Call):
        answer = await self._run(call)
        if call.routine is PROMOTE_JOBS:  # the leader's own looks do not insist
            self._looks += 1
            self._looked.set()
        return answer

    async def has_looked(self, times: int) -> None:
        """Return when it has looked so often, and fail if it ends before."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self._looks < times and not self.task.done():
                await asyncio.wait(
                    [self.task, asyncio.ensure_future(self._looked.wait())],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                self._looked.clear()
        assert self._looks >= times, "the drain has ended"

    async def ends(self) -> None:
        """Return when it has ended."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.task


async def test_what_the_leader_is_just_promoting_is_waited_for(app, worker_of, database):
    @app.job()
    async def run(ctx: JobContext) -> None: ...

    job = await run.options(delay=timedelta(milliseconds=1)).enqueue()
    with database.connect() as leader:
        leader.execute("begin")
        while leader.execute(PROMOTE).fetchone() != (1,):
            leader.execute("rollback; begin")
        worker = await worker_of()
        drain = Drain(worker)
        await drain.has_looked(2)
        leader.execute("commit")
        await drain.ends()
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


async def test_a_connection_that_is_lost_does_not_end_the_drain(app, worker_of, database, events):
    @app.job()
    async def run(ctx: JobContext) -> None: ...

    job = await run.enqueue()
    worker = await worker_of()
    with database.connect() as holder, database.connect() as killer:
        holder.execute("begin")
        holder.execute("lock table onecommit.scheduled in access exclusive mode")
        drain = Drain(worker)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not drain.task.done() and "promote_jobs" not in operations(events):
                killer.execute(TERMINATE, (holder.info.backend_pid,))
                await asyncio.sleep(PAUSE_SECONDS)
        holder.execute("rollback")
        await drain.ends()
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


def operations(events: Events) -> set[str]:
    """What the worker is asking for again."""
    return {event.operation for event in events.of(Reconnecting)}


async def test_a_job_held_for_long_is_left_to_its_holder(app, worker_of, database, monkeypatch):
    monkeypatch.setattr("onecommit.worker.draining._HELD_SECONDS", 0.1)

    @app.job()
    async def run(ctx: JobContext) -> None: ...

    job = await run.options(delay=timedelta(milliseconds=1)).enqueue()
    with database.connect() as holder:
        holder.execute("begin")
        holder.execute(CANCEL, (job.job_id,))
        worker = await worker_of()
        await Drain(worker).ends()
        holder.execute("commit")
    assert (await app.jobs.get(job.job_id)).state is JobState.CANCELLED


async def test_a_retry_that_is_recorded_after_the_look_is_not_overlooked(app, worker_of, database):
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job(retry=Retry(first=timedelta(0)), max_attempts=2)
    async def fail_once(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            begun.set()
            await go_on.wait()
            raise LookupError

    job = await fail_once.enqueue()
    worker = await worker_of()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await begun.wait()
    with database.connect() as operator, database.connect() as observer:
        operator.execute("begin")
        operator.execute(CANCEL, (job.job_id,))
        go_on.set()
        await until_blocked(observer, by=operator)
        drain = Drain(worker)
        await drain.has_looked(1)
        operator.execute("rollback")
        await drain.ends()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt) == (JobState.COMPLETED, 2)


async def until_blocked(observer: psycopg.Connection, *, by: psycopg.Connection) -> None:
    """Return when somebody waits for what the other connection holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while observer.execute(BLOCKED, (by.info.backend_pid,)).fetchone() != (True,):
            await asyncio.sleep(PAUSE_SECONDS)
