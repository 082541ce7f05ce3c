"""A job keeps the signature of its handler, without the context."""

from datetime import timedelta
from typing import assert_type

from psycopg import AsyncConnection, Connection
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from onecommit import App, Enqueued, JobContext, SyncJobContext

app = App()


@app.job(queue="email")
async def send(ctx: JobContext, to: str, *, copies: int = 1) -> str:
    return to * copies


@app.job()
def resize(ctx: SyncJobContext, path: str) -> None: ...


async def enqueue() -> None:
    assert_type(await send.enqueue("a", copies=2), Enqueued)
    assert_type(await send.enqueue(to="a"), Enqueued)
    assert_type(send.sync.enqueue("a"), Enqueued)
    assert_type(await send.options(delay=timedelta(hours=1)).enqueue("a"), Enqueued)
    assert_type(send.options(priority=1).sync.enqueue("a"), Enqueued)
    assert_type(await send.enqueue_many([{"to": "a"}]), list[Enqueued])
    assert_type(await resize.enqueue(path="a"), Enqueued)

    await send.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await send.enqueue(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await send.enqueue("a", cc="b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    send.sync.enqueue(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await send.options(priority="1").enqueue("a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def enqueue_in_a_transaction(
    psycopg_async: AsyncConnection,
    psycopg_sync: Connection,
    session_async: AsyncSession,
    session_sync: Session,
) -> None:
    assert_type(await send.in_tx(psycopg_async).enqueue("a"), Enqueued)
    assert_type(await send.in_tx(session_async).enqueue("a"), Enqueued)
    assert_type(send.in_tx(psycopg_sync).enqueue("a"), Enqueued)
    assert_type(send.options(priority=1).in_tx(session_sync).enqueue("a"), Enqueued)

    send.in_tx(session_sync).enqueue(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send.in_tx("dsn").enqueue("a")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownMemberType]


async def call_directly(ctx: JobContext) -> None:
    assert_type(await send(ctx, "a", copies=3), str)


@app.job()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def forgets_the_context() -> None: ...


@app.job(max_attempts="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
async def wrong_setting(ctx: JobContext) -> None: ...
