"""The service's own tables, in the database that holds its Work."""

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from payments.contracts import Charged, PaidOut, app

POOL_SIZE = 5
pool = AsyncConnectionPool(lambda: app.settings.dsn, min_size=1, max_size=POOL_SIZE, open=False)

TABLES = """
create table if not exists shop_order (
    shop text not null,
    number text not null,
    cents bigint not null check (cents > 0),
    work_id bigint not null unique,
    state text not null default 'accepted',
    reference text,
    primary key (shop, number)
);
create table if not exists shop_payout (
    shop text not null,
    number text not null,
    cents bigint not null check (cents > 0),
    work_id bigint not null unique,
    state text not null default 'accepted',
    transfer text,
    primary key (shop, number)
);
"""


async def create_tables() -> None:
    """Create what is missing."""
    async with pool.connection() as connection:
        await connection.execute(TABLES)


async def insert_order(
    connection: AsyncConnection, *, shop: str, number: str, cents: int, work_id: int
) -> None:
    """Write an order in the caller's transaction; a repeated one stands already."""
    await connection.execute(
        "insert into shop_order (shop, number, cents, work_id) values (%s, %s, %s, %s)"
        " on conflict do nothing",
        (shop, number, cents, work_id),
    )


async def insert_payout(
    connection: AsyncConnection, *, shop: str, number: str, cents: int, work_id: int
) -> None:
    """The same for a payout."""
    await connection.execute(
        "insert into shop_payout (shop, number, cents, work_id) values (%s, %s, %s, %s)"
        " on conflict do nothing",
        (shop, number, cents, work_id),
    )


async def record_charged(work_id: int, charged: Charged) -> None:
    """Write the provider's answer to the order; any number of times."""
    async with pool.connection() as connection:
        await connection.execute(
            "update shop_order set state = %s, reference = %s where work_id = %s",
            ("paid" if charged.paid else "declined", charged.reference, work_id),
        )


async def record_paid_out(work_id: int, paid: PaidOut) -> None:
    """The same for a payout."""
    async with pool.connection() as connection:
        await connection.execute(
            "update shop_payout set state = 'paid', transfer = %s where work_id = %s",
            (paid.transfer, work_id),
        )


async def find_order(shop: str, number: str) -> dict[str, Any] | None:
    """An order as it stands."""
    return await _find("select * from shop_order where shop = %s and number = %s", shop, number)


async def find_payout(shop: str, number: str) -> dict[str, Any] | None:
    """A payout as it stands."""
    return await _find("select * from shop_payout where shop = %s and number = %s", shop, number)


async def _find(query: str, shop: str, number: str) -> dict[str, Any] | None:
    async with pool.connection() as connection:
        cursor = connection.cursor(row_factory=dict_row)
        return await (await cursor.execute(query, (shop, number))).fetchone()
