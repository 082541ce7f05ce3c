"""A web application that does not await, as with Flask, enqueues jobs; a worker elsewhere runs them."""

import asyncio
import os
from collections.abc import Callable, Iterable
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIEnvironment
from wsgiref.util import setup_testing_defaults

from psycopg_pool import ConnectionPool

from onecommit import App, JobContext, JobState

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the process ends.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()
pool = ConnectionPool(app.settings.dsn, min_size=1, max_size=5, open=True)


@app.job(queue="email")
async def send_receipt(ctx: JobContext, order_id: int) -> None:
    """The worker awaits, whoever enqueued the job."""


@app.job(queue="reports", name="count_visit")
async def count_visit(ctx: JobContext, path: str) -> None:
    """Something that belongs to no transaction."""


def create_order(item: str) -> int:
    """Insert an order and enqueue its receipt: both commit, or neither."""
    with pool.connection() as conn:  # commits at the end of the block
        row = conn.execute("insert into web_order (item) values (%s) returning id", (item,))
        (order_id,) = row.fetchone() or (0,)
        send_receipt.in_tx(conn).enqueue(order_id=order_id)
    return int(order_id)


def view(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """What a Flask or Django view does."""
    count_visit.sync.enqueue(path=environ["PATH_INFO"])  # on a connection of the App
    (item,) = parse_qs(environ["QUERY_STRING"])["item"]
    order_id = create_order(item)
    start_response("201 Created", [("Location", f"/orders/{order_id}")])
    return [b""]


def request(application: Callable[..., Iterable[bytes]], path: str, query: str) -> str:
    """One request without a network; returns the status."""
    environ: WSGIEnvironment = {"PATH_INFO": path, "QUERY_STRING": query}
    setup_testing_defaults(environ)
    answers: list[str] = []
    list(application(environ, lambda status, *_: answers.append(status)))
    return answers[0]


async def work() -> None:
    """Run the queues empty. In production: `onecommit worker sync_producer:app`."""
    async with app.worker() as worker:
        await worker.drain()


def main() -> None:
    """Send a request, run the jobs, look at them."""
    with pool.connection() as conn:
        conn.execute(
            "create table if not exists web_order"
            " (id bigint generated always as identity primary key, item text not null)"
        )
    assert request(view, "/orders", "item=lamp") == "201 Created"
    asyncio.run(work())
    with app.sync as client:
        for queue in ("email", "reports"):
            (job,) = client.jobs.list(queue=queue, limit=1)
            assert job.state is JobState.COMPLETED
    pool.close()
    print("ok: one order, its receipt sent, its visit counted")


if __name__ == "__main__":
    main()
