"""The application that the tests beside this file test."""

import psycopg

from onecommit import App, FinalizationReceipt, JobContext, SyncCallerOwnedJobContext

app = App()

TABLE = "create table customer (id bigint generated always as identity primary key, name text not null, greeted boolean not null default false)"


async def deliver(to: str, text: str) -> None:
    """Stands for a call over the network; the tests replace it."""
    raise NotImplementedError


@app.job(queue="email")
async def send_welcome(ctx: JobContext, name: str) -> str:
    """Deliver the welcome."""
    await deliver(f"{name}@example.com", "Welcome!")
    return f"delivered in attempt {ctx.attempt}"


@app.caller_owned_job(queue="customers")
def mark_greeted(ctx: SyncCallerOwnedJobContext, customer_id: int) -> FinalizationReceipt:
    """Write the row in the commit that completes the job."""
    with psycopg.connect(app.settings.dsn) as conn:
        conn.execute("update customer set greeted = true where id = %s", (customer_id,))
        return ctx.complete_in_tx(conn)


def sign_up(conn: psycopg.Connection, name: str) -> int:
    """Insert a customer and enqueue what follows: all of it commits, or nothing."""
    with conn.transaction():
        row = conn.execute("insert into customer (name) values (%s) returning id", (name,))
        (customer_id,) = row.fetchone() or (0,)
        send_welcome.in_tx(conn).enqueue(name=name)
        mark_greeted.in_tx(conn).enqueue(customer_id=customer_id)
    return int(customer_id)
