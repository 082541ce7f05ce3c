"""Jobs that wait for another job: what its end makes of them, and how they learn of it."""

import asyncio
import os

import psycopg

from onecommit import App, Job, JobContext, JobState, Outcome

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

apologies: list[str] = []


@app.job(queue="orders", max_attempts=1)
async def charge(ctx: JobContext, order: str) -> None:
    """Fails for good if the card is refused."""
    if order == "refused":
        raise ValueError("the card was refused")


@app.job(queue="orders")
async def ship(ctx: JobContext, order: str) -> None:
    """Runs only if the order was paid for."""


@app.job(queue="orders")
async def write_to(ctx: JobContext, order: str) -> None:
    """Runs in any case, and says what has happened."""
    assert ctx.parent is not None
    if not ctx.parent.completed:
        apologies.append(f"{order}: {ctx.parent.outcome}, {ctx.parent.code}")


async def place(conn: psycopg.AsyncConnection, order: str) -> dict[str, int]:
    """Enqueue a job and what follows it: all of them, or none."""
    async with conn.transaction():
        charged = await charge.in_tx(conn).enqueue(order=order)
        after = charged.job_id
        shipped = await ship.options(after=after).in_tx(conn).enqueue(order=order)
        told = write_to.options(after=after, on_parent_failure="enqueue")
        written = await told.in_tx(conn).enqueue(order=order)
    return {"charge": after, "ship": shipped.job_id, "write": written.job_id}


async def states(jobs: dict[str, int]) -> dict[str, JobState]:
    """Where each of them stands."""
    views = {name: await app.jobs.get(job_id) for name, job_id in jobs.items()}
    return {name: view.state for name, view in views.items() if view is not None}


async def run_queue() -> None:
    """Run the queue empty, the dependants that become ready included."""
    async with app.worker(queues={"orders": 5}) as worker:
        await worker.drain()


async def wait_for(job: Job[..., object], parent: int) -> JobState:
    """Where a job stands that is enqueued after its parent has ended."""
    late = await job.options(after=parent).enqueue(order="late")
    view = await app.jobs.get(late.job_id)
    assert view is not None
    assert view.parent_id == parent
    return view.state


async def main() -> None:
    """Place an order that can be paid for, and one that cannot."""
    async with app:
        await app.jobs.list(limit=1)  # starts the server
        async with await psycopg.AsyncConnection.connect(app.settings.dsn) as conn:
            paid = await place(conn, "paid")
            refused = await place(conn, "refused")
        assert (await states(paid))["ship"] is JobState.BLOCKED

        await run_queue()
        assert set((await states(paid)).values()) == {JobState.COMPLETED}
        assert await states(refused) == {
            "charge": JobState.DEAD,
            "ship": JobState.CANCELLED,
            "write": JobState.COMPLETED,
        }
        assert apologies == [f"refused: {Outcome.FAILED}, handler_error"]

        # A parent that has ended already decides at once.
        assert await wait_for(ship, paid["charge"]) is JobState.READY
        assert await wait_for(ship, refused["charge"]) is JobState.CANCELLED
    print("ok: one order shipped, one not, and its customer told why")


if __name__ == "__main__":
    asyncio.run(main())
