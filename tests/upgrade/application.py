"""What runs in both releases: an ordinary job, a caller-owned one, and Work; and a producer of all three.

    python -m tests.upgrade.application FIRST

enqueues from FIRST on until its standard input is closed, then prints how many it has enqueued of each.
"""

import os
import sys
import threading
from datetime import timedelta

import psycopg

from onecommit import SyncWorkInvocation
from onecommit.app.app import App
from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.domain.retry import Retry
from onecommit.domain.token import FinalizationReceipt
from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkRetry

app = App()
SOON = Retry(first=timedelta(milliseconds=100), longest=timedelta(seconds=1))
PAUSE_SECONDS = 0.1


@app.job(queue="plain", retry=SOON, max_attempts=100)
async def note(ctx: JobContext, n: int) -> int:
    return n


@app.caller_owned_job(queue="settle", retry=SOON, max_attempts=100)
async def settle(ctx: CallerOwnedJobContext, n: int) -> FinalizationReceipt:
    async with await psycopg.AsyncConnection.connect(os.environ["FINALIZER_DSN"]) as connection:
        await connection.execute("insert into ledger values (%s)", (n,))
        return await ctx.complete_in_tx(connection)


charge = app.work(
    "charge",
    version="1",
    payload=int,
    result=str,
    safety=Safety.PROVIDER_KEYED,
    retry=WorkRetry(lease=timedelta(seconds=10), renewal=timedelta(seconds=2)),
)


@charge.executor
def pay(invocation: SyncWorkInvocation, payload: int) -> str:
    return f"paid {payload}"


def produce(first: int) -> int:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    n = first
    while not ended.wait(PAUSE_SECONDS):
        note.sync.enqueue(n=n)
        settle.sync.enqueue(n=n)
        charge.sync.accept(n, scope="s", command_id=f"c{n}", idempotency_key=f"k{n}")
        n += 1
    return n - first


if __name__ == "__main__":
    print(produce(int(sys.argv[1])))
