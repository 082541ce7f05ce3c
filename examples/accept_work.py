"""Accept charges at a payment provider from a shop's webhook: once per event, in the commit that writes the order."""

import asyncio
import os
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg_pool import AsyncConnectionPool

from onecommit import Accepted, App, CommandConflict, Duplicate, Safety, WorkPlan, WorkRetry

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()
pool = AsyncConnectionPool(app.settings.dsn, min_size=1, max_size=5, open=False)

TABLE = "create table if not exists shop_order (number text primary key, cents bigint not null)"


@dataclass
class Charge:
    order: str
    cents: int


@dataclass
class Charged:
    reference: str


charge = app.work(
    "billing.charge",
    version="1",
    payload=Charge,
    result=Charged,
    safety=Safety.PROVIDER_KEYED,
    retry=WorkRetry(max_attempts=5, max_delay=timedelta(minutes=5)),
)


async def webhook(event: dict[str, str]) -> Accepted | Duplicate:
    """Write the order and accept its charge; the shop repeats an event until it gets an answer."""
    order, cents = event["order"], int(event["cents"])
    async with pool.connection() as connection, connection.transaction():
        await connection.execute(
            "insert into shop_order values (%s, %s) on conflict do nothing", (order, cents)
        )
        return await charge.in_tx(connection).accept(
            Charge(order, cents),
            scope=event["shop"],
            command_id=f"charge:{order}",
            idempotency_key=event["id"],
        )


async def webhook_of_a_liar(event: dict[str, str]) -> str:
    """The same, where the shop sends another amount under the same identities: the transaction stays usable."""
    async with pool.connection() as connection, connection.transaction():
        try:
            await charge.in_tx(connection).accept(
                Charge(event["order"], 1),
                scope=event["shop"],
                command_id=f"charge:{event['order']}",
                idempotency_key=event["id"],
            )
        except CommandConflict:
            await connection.execute(
                "insert into shop_order values (%s, 0) on conflict do nothing",
                (f"disputed {event['order']}",),
            )
    return "disputed"


async def charge_by_plan(order: str, *, ends_at: datetime) -> Accepted | Duplicate:
    """A charge that makes no sense after its reservation: three fixed slots, and a deadline."""
    return await charge.accept(
        Charge(order, 500),
        scope="shop-1",
        command_id=f"charge:{order}",
        idempotency_key=f"reservation:{order}",
        plan=WorkPlan(
            offsets=(timedelta(0), timedelta(seconds=10), timedelta(minutes=1)),
            circuit=timedelta(minutes=5),
        ),
        deadline=ends_at,
    )


async def main() -> None:
    """Deliver each event as a shop does, and look at what was made of it."""
    async with app, pool:
        async with pool.connection() as connection:
            await connection.execute(TABLE)
            (number,) = await (
                await connection.execute("select gen_random_uuid()::text")
            ).fetchone()
            (ends_at,) = await (
                await connection.execute("select now() + interval '10 minutes'")
            ).fetchone()
        event = {"id": f"evt-{number}", "shop": "shop-1", "order": number, "cents": "1200"}

        first = await webhook(event)
        again = await webhook(event)
        forwarded = await webhook(event | {"id": f"evt-{number}-forwarded"})
        assert isinstance(first, Accepted)
        assert isinstance(again, Duplicate)
        assert isinstance(forwarded, Duplicate)
        assert {again.work_id, forwarded.work_id} == {first.work_id}
        assert await webhook_of_a_liar(event) == "disputed"

        reserved = await charge_by_plan(f"{number}-reserved", ends_at=ends_at)
        assert await charge_by_plan(f"{number}-reserved", ends_at=ends_at) == Duplicate(
            work_id=reserved.work_id,
            activity_id=reserved.activity_id,
            command_id=reserved.command_id,
            revision=1,
            accepted_at=reserved.accepted_at,
        )

        async with pool.connection() as connection:
            rows = await connection.execute(
                "select cents from shop_order where number like %s order by 1", (f"%{number}",)
            )
            assert await rows.fetchall() == [(0,), (1200,)]
    print(f"ok: two orders' rows, one charge for four deliveries, key {first.activity_id}")


if __name__ == "__main__":
    asyncio.run(main())
