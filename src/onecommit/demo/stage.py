"""The whole demo: a server of its own, the two parts, and their ledgers."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import psycopg

from onecommit import schema
from onecommit.demo.children import Children
from onecommit.demo.invoice_course import InvoiceCourse
from onecommit.demo.journal import read_journal
from onecommit.demo.ledger import Ledger
from onecommit.demo.steps import Step
from onecommit.demo.work_course import WorkCourse
from onecommit.demo.work_ledger import WorkLedger
from onecommit.embedded import EmbeddedPostgres


class Demo:
    """An embedded server, and the processes that work on it; a context manager."""

    def __init__(self, *, invoices: int = 1000, budget: float = 120.0) -> None:
        self.invoices = invoices
        self._budget = budget
        self._stack = ExitStack()
        self._children: Children
        self._connect: partial[psycopg.Connection[Any]]
        self._journal: Path

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            dsn = stack.enter_context(EmbeddedPostgres()).dsn()
            schema.apply(dsn)
            identity = schema.ensure_epoch(dsn, actor="demo", reason="the demo's own store")
            environment = {
                "ONECOMMIT_DSN": dsn,
                "ONECOMMIT_STORE_ID": str(identity.store_id),
                "ONECOMMIT_EPOCH": str(identity.epoch),
            }
            os.environ.update(
                environment
            )  # for the Apps, of which this process enqueues and accepts
            self._children = stack.enter_context(Children())
            self._connect = partial(psycopg.connect, dsn, autocommit=True)
            self._journal = Path(stack.enter_context(TemporaryDirectory())) / "provider.jsonl"
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self) -> Iterator[Step]:
        """Settle all invoices, then do the Work of all orders."""
        yield from InvoiceCourse(
            self._children, self._connect, invoices=self.invoices, budget=self._budget
        ).run()
        yield from WorkCourse(
            self._children, self._connect, journal=self._journal, budget=self._budget
        ).run()

    def ledger(self) -> Ledger:
        """What the database says about the invoices now."""
        with self._connect() as conn:
            return Ledger.read(conn)

    def work_ledger(self) -> WorkLedger:
        """What the database and the provider say about the Work of the orders now."""
        with self._connect() as conn:
            return WorkLedger.read(conn, read_journal(self._journal))
