"""Settle invoices with Django's ORM: an invoice's row and the completion of its job land in one commit."""

import asyncio
import os
import time
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import connection, models, transaction

from onecommit import App, FinalizationReceipt, SyncCallerOwnedJobContext

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

# A project has this in its settings module; the store lives in the same database.
url = urlsplit(app.settings.dsn)
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": url.hostname,
            "PORT": url.port,
            "USER": url.username,
            "PASSWORD": url.password or "",
            "NAME": url.path[1:],
            "OPTIONS": {"pool": True},
        }
    },
)
django.setup()


class Invoice(models.Model):
    """An invoice."""

    cents = models.BigIntegerField()
    state = models.TextField(default="open")

    class Meta:
        """A project has an app; this one model stands alone."""

        app_label = "billing"
        db_table = "django_invoice"

    def __str__(self) -> str:
        return f"invoice {self.pk}"


def ask_bank(invoice_id: int) -> str:
    """Stands for a call over the network."""
    time.sleep(0.01)
    return "settled"


@app.caller_owned_job(queue="billing", name="settle_django_invoice", max_attempts=10)
def settle(ctx: SyncCallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    """Settle one invoice in the commit that completes its job."""
    state = ask_bank(invoice_id)  # no transaction is open meanwhile
    try:
        with transaction.atomic(durable=True):  # durable: refuses to be a savepoint
            Invoice.objects.filter(pk=invoice_id).update(state=state)
            return ctx.complete_in_tx(connection)
    finally:
        connection.close()  # gives it back to the pool


@transaction.atomic
def create_invoice(cents: int) -> int:
    """Insert an invoice and enqueue its job: both commit, or neither."""
    invoice = Invoice.objects.create(cents=cents)
    settle.in_tx(connection).enqueue(invoice_id=invoice.pk)
    return int(invoice.pk)


def create_table() -> None:
    """A project has a migration for this."""
    if Invoice._meta.db_table not in connection.introspection.table_names():
        with connection.schema_editor() as editor:
            editor.create_model(Invoice)


async def work() -> None:
    """Run the queue empty: the worker awaits, the handlers do not."""
    async with app.worker(queues={"billing": 5}) as worker:
        await worker.drain()


def main() -> None:
    """Make invoices, settle them, check them."""
    create_table()
    ids = [create_invoice(cents) for cents in (1250, 990, 40_000)]
    asyncio.run(work())
    assert Invoice.objects.filter(pk__in=ids, state="settled").count() == len(ids)
    connection.close()
    connection.close_pool()
    print(f"ok: {len(ids)} invoices settled")


if __name__ == "__main__":
    main()
