"""A caller-owned handler that forgets its receipt does not check."""

from datetime import timedelta
from typing import assert_type

from psycopg import AsyncConnection, Connection

from onecommit import (
    App,
    CallerOwnedJobContext,
    Complete,
    Enqueued,
    FinalizationReceipt,
    FinalizationToken,
    JobContext,
    Snooze,
    SyncCallerOwnedJobContext,
)

app = App()


@app.caller_owned_job(queue="billing")
async def settle(ctx: CallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    async with await AsyncConnection.connect() as connection, connection.transaction():
        await connection.execute("select %s", (invoice_id,))
        receipt = await ctx.complete_in_tx(connection)
    assert_type(receipt, FinalizationReceipt)
    return receipt


@app.caller_owned_job()
def settle_sync(ctx: SyncCallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    with Connection.connect() as connection, connection.transaction():
        return ctx.complete_in_tx(connection)


@app.caller_owned_job()
async def settle_later(ctx: CallerOwnedJobContext) -> FinalizationReceipt | Snooze:
    return Snooze(timedelta(minutes=1))


@app.caller_owned_job()  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def forgets_the_receipt(ctx: CallerOwnedJobContext, invoice_id: int) -> None: ...


@app.caller_owned_job()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
def forgets_the_receipt_too(ctx: SyncCallerOwnedJobContext) -> None: ...


@app.caller_owned_job()  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def forgets_it_on_one_path(ctx: CallerOwnedJobContext) -> FinalizationReceipt | None:
    return None


@app.caller_owned_job()  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def says_complete_instead(ctx: CallerOwnedJobContext) -> Complete:
    return Complete()


@app.caller_owned_job()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def takes_an_ordinary_context(ctx: JobContext) -> FinalizationReceipt:
    raise NotImplementedError


@app.job()  # type: ignore[arg-type, type-var]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def is_not_registered_as_caller_owned(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
    raise NotImplementedError


async def mixes_sync_and_async(ctx: CallerOwnedJobContext, connection: Connection) -> None:
    await ctx.complete_in_tx(connection)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def enqueue(token: FinalizationToken) -> None:
    assert_type(await settle.enqueue(invoice_id=1), Enqueued)
    await settle.enqueue(invoice_id="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
