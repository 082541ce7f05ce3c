"""Pay invoices through a provider that answers later, by a webhook: the handler waits, then settles in one commit."""

import asyncio
import os
from datetime import timedelta

from psycopg_pool import AsyncConnectionPool

from onecommit import (
    App,
    CallbackAnswer,
    CallbackTimedOut,
    CallerOwnedJobContext,
    FinalizationReceipt,
    JobState,
    RetryAfter,
)

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()
pool = AsyncConnectionPool(app.settings.dsn, min_size=1, max_size=5, open=False)

TABLE = """
create table if not exists payment (
    id bigint generated always as identity primary key,
    cents bigint not null,
    state text not null default 'open'
)
"""


class Provider:
    """Stands for a payment provider: it takes an order, and calls our webhook when it has decided."""

    def __init__(self) -> None:
        self.orders: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    async def order(self, *, reference: str, cents: int) -> None:
        """Take an order; the reference comes back with the answer."""
        await self.orders.put((reference, cents))

    async def decide(self) -> list[CallbackAnswer]:
        """Call the webhook for one order, and once more, as providers do when they are in doubt."""
        reference, cents = await self.orders.get()
        event = {"reference": reference, "status": "paid" if cents < 10_000 else "declined"}
        return [await webhook(event) for _ in range(2)]


provider = Provider()


@app.caller_owned_job(queue="payments", name="pay")
async def pay(
    ctx: CallerOwnedJobContext, payment_id: int, cents: int
) -> FinalizationReceipt | RetryAfter:
    """Order the payment, wait for the provider, and settle in the commit that completes the job."""
    callback = await ctx.register_callback(name="provider", timeout=timedelta(hours=2))
    await provider.order(reference=callback.id, cents=cents)
    try:
        answer = await ctx.wait_for_callback(
            callback
        )  # no slot, connection or transaction meanwhile
    except CallbackTimedOut:
        return RetryAfter(timedelta(minutes=10))
    await pool.open()  # does nothing when it is open
    async with pool.connection() as conn, conn.transaction():
        await conn.execute(
            "update payment set state = %s where id = %s", (answer["status"], payment_id)
        )
        return await ctx.complete_in_tx(conn)


async def webhook(event: dict[str, str]) -> CallbackAnswer:
    """What the web application does with the provider's call, after it has checked its signature."""
    return await app.callbacks.resume(event["reference"], {"status": event["status"]})


async def main() -> None:
    """Make payments, let the provider decide, check them."""
    async with app, pool:
        async with pool.connection() as conn:
            await conn.execute(TABLE)
        jobs = []
        for cents in (1250, 40_000):
            async with pool.connection() as conn, conn.transaction():
                rows = await conn.execute(
                    "insert into payment (cents) values (%s) returning id", (cents,)
                )
                (payment_id,) = await rows.fetchone() or (0,)
                jobs.append(await pay.in_tx(conn).enqueue(payment_id=payment_id, cents=cents))
        async with app.worker(queues={"payments": 1}):  # both wait at the same time all the same
            answers = [await provider.decide() for _ in jobs]
            while not await completed([job.job_id for job in jobs]):
                await asyncio.sleep(0.05)
        assert answers == [[CallbackAnswer.ACCEPTED, CallbackAnswer.ALREADY_RESOLVED]] * 2
        async with pool.connection() as conn:
            rows = await conn.execute("select state from payment order by id desc limit 2")
            assert [state for (state,) in await rows.fetchall()] == ["declined", "paid"]
    print("ok: one payment paid, one declined, each answered once")


async def completed(job_ids: list[int]) -> bool:
    """Whether all of these jobs are completed."""
    jobs = [await app.jobs.get(job_id) for job_id in job_ids]
    return all(job is not None and job.state is JobState.COMPLETED for job in jobs)


if __name__ == "__main__":
    asyncio.run(main())
