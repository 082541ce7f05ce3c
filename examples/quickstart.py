"""Register a job, enqueue it and run it: producer and worker in one process."""

import asyncio
import os

from onecommit import App, JobContext, JobState

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()


@app.job(queue="greetings", max_attempts=3)
async def greet(ctx: JobContext, name: str) -> str:
    """Greet somebody; what is returned is kept with the job."""
    ctx.log.info("greeting somebody")
    return f"Hello, {name}!"


async def main() -> None:
    """Enqueue one job, run the queue empty, look at the job."""
    async with app:
        enqueued = await greet.enqueue(name="Ada")
        async with app.worker() as worker:
            await worker.drain()
        job = await app.jobs.get(enqueued.job_id)
        assert job is not None
        assert job.state is JobState.COMPLETED
        assert job.detail == {"result": "Hello, Ada!"}
    print("ok: one job completed")


if __name__ == "__main__":
    asyncio.run(main())
