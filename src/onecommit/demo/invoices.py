"""The application of the demo: a table of invoices and the job that settles one."""

import os
import random
import time
from functools import cache
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool

from onecommit import App, FinalizationReceipt, StaleAttempt, SyncCallerOwnedJobContext

QUEUE = "billing"

TABLES = """
create table invoice (
    id integer primary key,
    cents integer not null,
    state text not null default 'open'
);
-- No key on invoice_id: if an invoice were settled twice, two rows would say so.
create table settlement (
    invoice_id integer not null,
    cents integer not null,
    job_id bigint not null,
    run_lease bigint not null,
    worker integer not null
);
-- Written outside of the handler's transaction, which is gone by then.
create table refusal (
    job_id bigint not null,
    run_lease bigint not null
);
"""

app = App()


@cache
def _connections() -> ConnectionPool:
    """The application's own pool, opened by the first handler of this process."""
    return ConnectionPool(os.environ["ONECOMMIT_DSN"], min_size=1, max_size=12, open=True)


def _ask_bank(cents: int) -> str:
    """Stands for a call over the network: no transaction is open while it lasts."""
    time.sleep(random.uniform(0.02, 0.08))  # noqa: S311  a duration, not a secret
    return "settled" if cents > 0 else "void"


# A `def` handler runs in a thread, which nothing can cancel: when the demo thaws a frozen worker,
# its handlers go on where they were, and only the database can refuse what they then try to commit.
@app.caller_owned_job(queue=QUEUE, max_attempts=10)
def settle(ctx: SyncCallerOwnedJobContext, *, invoice_id: int, cents: int) -> FinalizationReceipt:
    """Settle one invoice: its rows and the completion of this attempt land in one commit."""
    state = _ask_bank(cents)
    try:
        with _connections().connection() as conn:
            conn.execute("update invoice set state = %s where id = %s", (state, invoice_id))
            conn.execute(
                "insert into settlement values (%s, %s, %s, %s, %s)",
                (invoice_id, cents, ctx.job_id, ctx.run_lease, os.getpid()),
            )
            return ctx.complete_in_tx(conn)
    except StaleAttempt:
        with _connections().connection() as conn:
            conn.execute("insert into refusal values (%s, %s)", (ctx.job_id, ctx.run_lease))
        raise


def create_invoices(conn: psycopg.Connection[Any], count: int) -> None:
    """Make the invoices and the jobs that settle them in one transaction."""
    amounts = [(number, random.randint(100, 99_999)) for number in range(1, count + 1)]  # noqa: S311
    with conn.transaction():
        conn.execute(TABLES)
        with conn.cursor().copy("copy invoice (id, cents) from stdin") as copy:
            for row in amounts:
                copy.write_row(row)
        settle.in_tx(conn).enqueue_many(
            {"invoice_id": number, "cents": cents} for number, cents in amounts
        )
