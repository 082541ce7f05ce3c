"""The tests that docs/how-to/drivers/django.md shows, in a project of Django's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_pages import PYTHON, text_of

pytestmark = pytest.mark.pg

MODELS = """
from django.db import models

class Invoice(models.Model):
    id = models.BigAutoField(primary_key=True)
    state = models.TextField(default="open")
"""
RUNNER = """
import os
from django.db import connection
from django.test.runner import DiscoverRunner
from psycopg.conninfo import make_conninfo
from onecommit import schema
"""
TESTS = """
import asyncio
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from onecommit import App, FinalizationReceipt, SyncCallerOwnedJobContext
from onecommit.testing import discard_jobs, enqueued, run_jobs
from shop.models import Invoice

app = App()

@app.caller_owned_job(queue="billing")
def settle(ctx: SyncCallerOwnedJobContext, invoice_id: int) -> FinalizationReceipt:
    try:
        with transaction.atomic(durable=True):
            Invoice.objects.filter(pk=invoice_id).update(state="settled")
            return ctx.complete_in_tx(connection)
    finally:
        connection.close()

def create_invoice(cents: int) -> int:
    with transaction.atomic():
        invoice = Invoice.objects.create()
        settle.in_tx(connection).enqueue(invoice_id=invoice.pk)
    return invoice.pk
"""
PROJECT = """
import django
from django.conf import settings
from django.core.management import call_command
from onecommit.embedded import EmbeddedPostgres

with EmbeddedPostgres() as postgres:
    server = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres"}
    server |= {"HOST": "127.0.0.1", "PORT": postgres.server.port, "PASSWORD": postgres.dsn().split(":")[2].split("@")[0]}
    settings.configure(
        DATABASES={"default": server}, INSTALLED_APPS=["shop"], TEST_RUNNER="runner.StoreRunner"
    )
    django.setup()
    call_command("test", "shop")
"""


def test_the_tests_of_the_page_run_as_they_stand(tmp_path: Path):
    """Beside an environment that names the store of development, which no test may touch."""
    runner, enqueueing, running = PYTHON.findall(text_of("how-to/drivers/django.md"))[-3:]
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "__init__.py").touch()
    (shop / "models.py").write_text(MODELS)
    (shop / "tests.py").write_text(TESTS + enqueueing + running)
    (tmp_path / "runner.py").write_text(RUNNER + runner)
    (tmp_path / "project.py").write_text(PROJECT)
    development = {"ONECOMMIT_DSN": "postgresql://192.0.2.1/development", "ONECOMMIT_EPOCH": "7"}
    ended = subprocess.run(
        [sys.executable, "-W", "error", "project.py"],
        cwd=tmp_path,
        env=os.environ | development,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^Ran 2 tests", ended.stderr, re.MULTILINE)
