"""What becomes of a job whose handler fails, and how an operator brings it back."""

import asyncio
import os
from datetime import timedelta
from typing import Any

from onecommit import App, Discard, Job, JobContext, JobState, Retry

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

closed_banks = {"North"}


class BankClosed(Exception):
    """Raised while a bank does not answer."""


# The default waits 2 seconds, then 4, 8, and so on up to a day; an example has no time for that.
@app.job(queue="payouts", max_attempts=3, retry=Retry(first=timedelta(0)))
async def pay_out(ctx: JobContext, bank: str) -> Discard | None:
    """An exception is tried again; an outcome says what else should happen."""
    if bank == "Atlantis":
        return Discard("there is no such bank")  # tried again, it would not be better
    if bank in closed_banks:
        raise BankClosed
    return None


async def run_queue() -> None:
    """Run the queue empty, the retries that are due included."""
    async with app.worker(queues={"payouts": 5}) as worker:
        await worker.drain()


async def dead_letter(job: Job[..., Any], **arguments: str) -> int:
    """Enqueue a job that ends in the dead letters."""
    enqueued = await job.enqueue(**arguments)
    await run_queue()
    assert enqueued.job_id in [dead.job_id for dead in await app.dead_letters.list(queue="payouts")]
    return enqueued.job_id


async def main() -> None:
    """Fail, look, repair, retry; and purge what is beyond repair."""
    async with app:
        failed = await dead_letter(pay_out, bank="North")
        job = await app.jobs.get(failed)
        assert job is not None
        assert (job.attempt, job.code) == (3, "handler_error")
        assert job.detail["type"] == "BankClosed"

        closed_banks.clear()
        await app.dead_letters.retry([failed], actor="ada", reason="the bank is open again")
        await run_queue()
        job = await app.jobs.get(failed)
        assert job is not None
        assert job.state is JobState.COMPLETED

        discarded = await dead_letter(pay_out, bank="Atlantis")
        job = await app.jobs.get(discarded)
        assert job is not None
        assert (job.attempt, job.code) == (1, "discarded")
        await app.dead_letters.purge([discarded], actor="ada", reason="typing mistake")
    print("ok: one job failed 3 times and completed after its retry, one was discarded")


if __name__ == "__main__":
    asyncio.run(main())
