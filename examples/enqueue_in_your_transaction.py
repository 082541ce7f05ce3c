"""A job that is enqueued in a transaction exists if, and only if, that transaction commits."""

import asyncio
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import psycopg

from onecommit import App, InvalidArgument, JobContext, JobState, Unique

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()


@app.job(queue="email")
async def send_email(ctx: JobContext, to: str, subject: str) -> None:
    """Nothing runs in this example; it is about producers."""


async def sign_up(conn: psycopg.AsyncConnection, name: str) -> int:
    """Insert a customer and enqueue the welcome: both, or neither."""
    async with conn.transaction():
        await conn.execute("insert into customer (name) values (%s)", (name,))
        welcome = await send_email.in_tx(conn).enqueue(to=name, subject="Welcome")
        if not name.isalpha():
            raise ValueError("no such name")
    return welcome.job_id


async def in_a_transaction() -> None:
    """Commit keeps the job, rollback takes it back."""
    async with await psycopg.AsyncConnection.connect(app.settings.dsn, autocommit=True) as conn:
        await conn.execute("create temporary table customer (name text)")
        job = await app.jobs.get(await sign_up(conn, "Ada"))
        assert job is not None
        newest = await app.jobs.list(queue="email", kind="send_email", limit=1)
        with suppress(ValueError):
            await sign_up(conn, "4da")
        assert await app.jobs.list(queue="email", kind="send_email", limit=1) == newest


async def with_options() -> None:
    """Later, first, at most once."""
    later = await send_email.options(
        run_at=datetime.now(UTC) + timedelta(days=1), priority=1, tags=["newsletter"]
    ).enqueue(to="ada@example.com", subject="News")
    job = await app.jobs.get(later.job_id)
    assert job is not None
    assert job.state is JobState.SCHEDULED

    once = send_email.options(unique=Unique(by=("to",), within=timedelta(seconds=5)))
    address = f"{later.job_id}@example.com"
    first = await once.enqueue(to=address, subject="Your receipt")
    second = await once.enqueue(to=address, subject="Your receipt, again")
    assert first.created
    assert not second.created
    assert second.job_id == first.job_id


async def in_bulk() -> None:
    """Many jobs in one transaction; one bad item refuses them all, before anything is written."""
    items = [{"to": f"{n}@example.com", "subject": "Hello"} for n in range(1000)]
    enqueued = await send_email.enqueue_many(items)
    assert len(enqueued) == len(items)
    refused = None
    try:
        await send_email.enqueue_many([*items, {"to": "a@example.com", "subject": None}])
    except InvalidArgument as error:
        refused = error.field
    assert refused == "subject"


async def main() -> None:
    """Show the three ways."""
    async with app:
        await in_a_transaction()
        await with_options()
        await in_bulk()
    print("ok: committed jobs exist, rolled back ones do not")


if __name__ == "__main__":
    asyncio.run(main())
