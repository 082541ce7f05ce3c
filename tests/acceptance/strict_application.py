"""An application of the strict profile: the worker, the handler's own connections and the producers log in as different roles."""

import os
from typing import Any

import psycopg

from onecommit import SyncWorkInvocation
from onecommit.app.app import App
from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.domain.token import FinalizationReceipt
from onecommit.domain.work import Safety

app = App()


@app.caller_owned_job(queue="settle")
async def settle(ctx: CallerOwnedJobContext, n: int) -> FinalizationReceipt:
    """The row and the completion, as a login that may do nothing else in the store."""
    async with await psycopg.AsyncConnection.connect(os.environ["HANDLER_DSN"]) as connection:
        await connection.execute("insert into ledger values (%s, current_user)", (n,))
        return await ctx.complete_in_tx(connection)


@app.job(queue="plain", max_attempts=2)
async def note(ctx: JobContext, n: int) -> int:
    """Fails once, so that it is retried by the maintenance."""
    if ctx.attempt == 1 and n == 1:
        raise ValueError("once")
    return n


work = app.work("charge", version="1", payload=dict, result=str, safety=Safety.PROVIDER_KEYED)


@work.executor
def charge(invocation: SyncWorkInvocation, payload: dict[str, Any]) -> str:
    return f"paid {payload['cents']}"
