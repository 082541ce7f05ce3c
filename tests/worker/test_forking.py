"""A process that a handler forks off ends where it would return to the worker, and the worker goes on."""

import asyncio
import multiprocessing
import os
import sys

import pytest

from onecommit import Safety, WorkInvocation
from onecommit.app.context import JobContext, SyncJobContext
from onecommit.domain.job import JobState
from onecommit.telemetry.events import WorkAttemptEnded

from tests.waiting_work import accept, define

pytestmark = pytest.mark.pg


def end(how: str) -> None:
    """In the child."""
    match how:
        case "exit":
            sys.exit(3)
        case "raise":
            raise LookupError


EXIT_CODES = {"return": 0, "exit": 3, "raise": 1}


@pytest.mark.parametrize("how", EXIT_CODES)
@pytest.mark.parametrize("where", ["at once", "after a wait", "in a thread"])
async def test_a_child_does_not_become_a_second_worker(app, worker_of, where, how):
    codes = []

    @app.job(max_attempts=1)
    async def fork(ctx: JobContext) -> None:
        if where == "after a wait":
            await asyncio.sleep(0)
        child = os.fork()
        if child == 0:
            end(how)
            return
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        codes.append(os.waitstatus_to_exitcode(status))

    @app.job(max_attempts=1)
    def fork_in_a_thread(ctx: SyncJobContext) -> None:
        child = os.fork()
        if child == 0:
            end(how)
            return
        _, status = os.waitpid(child, 0)
        codes.append(os.waitstatus_to_exitcode(status))

    worker = await worker_of()
    job = await (fork_in_a_thread if where == "in a thread" else fork).enqueue()
    async with asyncio.timeout(30):
        await worker.drain()
    assert codes == [EXIT_CODES[how]]
    assert (await app.jobs.get(job.job_id)).state is JobState.COMPLETED


@pytest.mark.parametrize("how", EXIT_CODES)
async def test_a_child_of_an_executor_does_not_become_a_second_worker(
    app, worker_of, events, database, how
):
    """Nor does it tell the store how the attempt of its parent ended."""
    codes = []
    charge = define(app, Safety.MANUAL_RESOLUTION)

    @charge.executor
    async def fork(invocation: WorkInvocation, payload: dict[str, int]) -> str:
        child = os.fork()
        if child == 0:
            end(how)
            return "by the child"
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        codes.append(os.waitstatus_to_exitcode(status))
        return "by the parent"

    await worker_of()
    await accept(charge)
    assert (await events.wait_for(WorkAttemptEnded)).outcome == "completed"
    assert codes == [EXIT_CODES[how]]
    with database.connect() as connection:
        result = connection.execute("select result from onecommit.work_result").fetchone()
        connection.execute("truncate onecommit.work_result")
    assert result == (b'"by the parent"',)


async def test_multiprocessing_works_in_a_handler(app, worker_of):
    codes = []

    @app.job(max_attempts=1)
    def fork(ctx: SyncJobContext) -> None:
        child = multiprocessing.get_context("fork").Process(target=sys.exit, args=(4,))
        child.start()
        child.join()
        codes.append(child.exitcode)

    worker = await worker_of()
    await fork.enqueue()
    async with asyncio.timeout(30):
        await worker.drain()
    assert codes == [4]
