"""A test suite of a Django project, run as its own process by test_django.py on the database of ONECOMMIT_DSN."""

import asyncio
import os
import sys
import unittest
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

from onecommit import App, FinalizationReceipt, JobState, SyncCallerOwnedJobContext

url = urlsplit(os.environ["ONECOMMIT_DSN"])
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": url.hostname,
            "PORT": url.port,
            "USER": url.username,
            "PASSWORD": url.password or "",
            "NAME": url.path[1:],
        }
    }
)
django.setup()
app = App()


@app.caller_owned_job(queue="suite")
def settle(ctx: SyncCallerOwnedJobContext, entry: str) -> FinalizationReceipt:
    try:
        with transaction.atomic(durable=True):
            connection.cursor().execute("insert into ledger values (%s)", [entry])
            return ctx.complete_in_tx(connection)
    finally:
        connection.close()


def enqueue(entry: str) -> int:
    with transaction.atomic():
        return settle.in_tx(connection).enqueue(entry=entry).job_id


def work() -> None:
    async def drain() -> None:
        async with app, app.worker(queues={"suite": 1}) as worker:
            await worker.drain()

    asyncio.run(drain())


def entries() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("select entry from ledger where entry like 'suite%'")
        return {entry for (entry,) in cursor.fetchall()}


class WithCommits(TransactionTestCase):
    def test_a_job_is_settled(self) -> None:
        job_id = enqueue("suite: committed")
        work()
        assert "suite: committed" in entries()
        assert app.sync.jobs.get(job_id).state is JobState.COMPLETED


class WithoutCommits(TestCase):
    def test_a_worker_does_not_see_the_job(self) -> None:
        job_id = enqueue("suite: never")
        work()
        assert "suite: never" not in entries()
        assert app.sync.jobs.get(job_id) is None


if __name__ == "__main__":
    result = unittest.TextTestRunner().run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    )
    app.sync.close()
    sys.exit(not result.wasSuccessful() or result.testsRun != 2)
