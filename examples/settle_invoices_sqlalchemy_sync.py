"""Settle invoices with a plain SQLAlchemy Session in a `def` handler, which runs in a thread."""

import asyncio
import os
import time

from sqlalchemy import create_engine, func, make_url, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

from onecommit import App, FinalizationReceipt, SyncCallerOwnedJobContext

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()
engine = create_engine(make_url(app.settings.dsn).set(drivername="postgresql+psycopg"))
sessions = sessionmaker(engine)


class Base(DeclarativeBase):
    """The tables of this application."""


class Invoice(Base):
    """An invoice."""

    __tablename__ = "orm_invoice"

    id: Mapped[int] = mapped_column(primary_key=True)
    cents: Mapped[int]
    state: Mapped[str] = mapped_column(default="open")


def ask_bank(invoice_id: int) -> str:
    """Stands for a call over the network."""
    time.sleep(0.01)
    return "settled"


@app.caller_owned_job(queue="billing", name="settle_orm_invoice", max_attempts=10)
def settle(ctx: SyncCallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    """Settle one invoice in the commit that completes its job."""
    state = ask_bank(invoice_id)  # no transaction is open meanwhile
    with sessions.begin() as session:
        invoice = session.get_one(Invoice, invoice_id)
        invoice.state = state
        session.flush()  # the completion comes last, after every write
        return ctx.complete_in_tx(session)


def create_invoice(cents: int) -> int:
    """Insert an invoice and enqueue its job: both commit, or neither."""
    with sessions.begin() as session:
        invoice = Invoice(cents=cents)
        session.add(invoice)
        session.flush()  # so that it has its id
        settle.in_tx(session).enqueue(invoice_id=invoice.id)
        return invoice.id


async def work() -> None:
    """Run the queue empty: the worker awaits, the handlers do not."""
    async with app.worker(queues={"billing": 5}) as worker:
        await worker.drain()


def main() -> None:
    """Make invoices, settle them, check them."""
    Base.metadata.create_all(engine)
    ids = [create_invoice(cents) for cents in (1250, 990, 40_000)]
    asyncio.run(work())
    with sessions() as session:
        count = select(func.count()).where(Invoice.id.in_(ids), Invoice.state == "settled")
        assert session.scalar(count) == len(ids)
    engine.dispose()
    print(f"ok: {len(ids)} invoices settled")


if __name__ == "__main__":
    main()
