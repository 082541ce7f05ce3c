"""One item that the store refuses does not keep the others of its batch from being recorded."""

import pytest

from onecommit.app.context import JobContext
from onecommit.domain.job import JobState
from onecommit.telemetry.events import AttemptUnrecorded

pytestmark = pytest.mark.pg


async def test_a_refused_item_is_found_and_left_open_while_the_others_are_recorded(
    app, worker_of, events
):
    @app.job(max_attempts=1)
    async def work(ctx: JobContext, n: int) -> int:
        return n

    jobs = await work.enqueue_many([{"n": n} for n in range(20)])
    worker = await worker_of()
    completer = worker._machinery.completer
    complete_with = completer.complete_with

    def spoil(attempt, *, detail, progressed):
        # What our own encoder would never let through.
        broken = attempt.job_id == jobs[7].job_id
        complete_with(attempt, detail="{" if broken else detail, progressed=progressed)

    completer.complete_with = spoil
    await worker.drain()

    views = [await app.jobs.get(job.job_id) for job in jobs]
    assert [view.state for view in views].count(JobState.COMPLETED) == 19
    assert views[7].state is JobState.RUNNING
    [unrecorded] = events.of(AttemptUnrecorded)
    assert unrecorded.job == jobs[7].job_id
    await app.jobs.cancel(jobs[7].job_id, actor="me", reason="test")
