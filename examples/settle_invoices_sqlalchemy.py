"""Settle invoices with an SQLAlchemy AsyncSession: a row and its job's completion land in one commit."""

import asyncio
import os

from sqlalchemy import func, make_url, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from onecommit import App, CallerOwnedJobContext, FinalizationReceipt

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()
# postgresql+asyncpg works as well.
engine = create_async_engine(make_url(app.settings.dsn).set(drivername="postgresql+psycopg"))
sessions = async_sessionmaker(engine)


class Base(DeclarativeBase):
    """The tables of this application."""


class Invoice(Base):
    """An invoice."""

    __tablename__ = "orm_invoice"

    id: Mapped[int] = mapped_column(primary_key=True)
    cents: Mapped[int]
    state: Mapped[str] = mapped_column(default="open")


async def ask_bank(invoice_id: int) -> str:
    """Stands for a call over the network."""
    await asyncio.sleep(0.01)
    return "settled"


@app.caller_owned_job(queue="billing", name="settle_orm_invoice", max_attempts=10)
async def settle(ctx: CallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    """Settle one invoice in the commit that completes its job."""
    state = await ask_bank(invoice_id)  # no transaction is open meanwhile
    async with sessions.begin() as session:
        invoice = await session.get_one(Invoice, invoice_id)
        invoice.state = state
        await session.flush()  # the completion comes last, after every write
        return await ctx.complete_in_tx(session)


async def create_invoice(cents: int) -> int:
    """Insert an invoice and enqueue its job: both commit, or neither."""
    async with sessions.begin() as session:
        invoice = Invoice(cents=cents)
        session.add(invoice)
        await session.flush()  # so that it has its id
        await settle.in_tx(session).enqueue(invoice_id=invoice.id)
        return invoice.id


async def main() -> None:
    """Make invoices, settle them, check them."""
    async with app:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        ids = [await create_invoice(cents) for cents in (1250, 990, 40_000)]
        async with app.worker(queues={"billing": 5}) as worker:
            await worker.drain()
        async with sessions() as session:
            count = select(func.count()).where(Invoice.id.in_(ids), Invoice.state == "settled")
            assert await session.scalar(count) == len(ids)
        await engine.dispose()
    print(f"ok: {len(ids)} invoices settled")


if __name__ == "__main__":
    asyncio.run(main())
