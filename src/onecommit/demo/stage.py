"""The course of the demo: what happens, in order, and to whom."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, LiteralString, Self

import psycopg

from onecommit import schema
from onecommit.demo.invoices import create_invoices
from onecommit.demo.ledger import Ledger
from onecommit.embedded import EmbeddedPostgres
from onecommit.errors import OnecommitError


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that has just happened."""

    settled: int
    news: str | None = None


class DemoStalled(OnecommitError):
    """The invoices were not settled in time."""


class Demo:
    """An embedded server, two workers, and what befalls them; a context manager."""

    def __init__(self, *, invoices: int = 1000, budget: float = 120.0) -> None:
        self.invoices = invoices
        self._budget = budget
        self._stack = ExitStack()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._environment: dict[str, str] = {}
        self._connect: Callable[[], psycopg.Connection[Any]]

    def __enter__(self) -> Self:
        dsn = self._stack.enter_context(EmbeddedPostgres()).dsn()
        schema.apply(dsn)
        identity = schema.ensure_epoch(dsn, actor="demo", reason="the demo's own store")
        self._environment = {
            **os.environ,
            "ONECOMMIT_DSN": dsn,
            "ONECOMMIT_STORE_ID": str(identity.store_id),
            "ONECOMMIT_EPOCH": str(identity.epoch),
        }
        os.environ.update(self._environment)
        create_invoices(dsn, self.invoices)
        self._connect = partial(psycopg.connect, dsn, autocommit=True)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._stack.close()

    def run(self) -> Iterator[Step]:
        """Settle all invoices, while a worker is frozen and another one killed."""
        yield Step(settled=0, news=f"{self.invoices} invoices and their jobs: one transaction")
        first, frozen = self._start_worker(), self._start_worker()
        yield Step(settled=0, news="two workers started")
        yield from self._watch(lambda settled: settled >= self.invoices // 4)
        frozen.send_signal(signal.SIGSTOP)
        yield Step(settled=self._settled(), news=f"worker {frozen.pid} frozen (SIGSTOP)")
        yield from self._watch(lambda settled: settled >= self.invoices // 2)
        first.kill()
        self._start_worker()
        yield Step(
            settled=self._settled(), news=f"worker {first.pid} killed (SIGKILL), one started"
        )
        yield from self._watch(lambda _: self._is_given_up(frozen))
        frozen.send_signal(signal.SIGCONT)
        yield Step(
            settled=self._settled(), news=f"worker {frozen.pid} thawed: its attempts are stale"
        )
        yield from self._watch(lambda settled: settled == self.invoices)
        self._stop_workers()

    def ledger(self) -> Ledger:
        """What the database says now."""
        with self._connect() as conn:
            return Ledger.read(conn)

    def _start_worker(self) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, "-m", "onecommit.demo.worker_process"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._workers.append(worker)
        return worker

    def _stop_workers(self) -> None:
        """Let the workers finish what they run: a stale attempt is refused only when it tries."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait(timeout=30)

    def _settled(self) -> int:
        return self._count("select count(*) from invoice where state <> 'open'")

    def _is_given_up(self, worker: subprocess.Popen[bytes]) -> bool:
        """Whether the others took the worker for dead, and what it had not begun to commit is open no more."""
        return not self._count(
            "select count(*) from onecommit.list_workers() where ended_at is null and (info ->> 'pid')::int = %s",
            worker.pid,
        )

    def _count(self, query: LiteralString, *arguments: int) -> int:
        with self._connect() as conn:
            (count,) = conn.execute(query, arguments).fetchone() or (0,)
        return int(count)

    def _watch(self, reached: Callable[[int], bool]) -> Iterator[Step]:
        give_up = time.monotonic() + self._budget
        while not reached(settled := self._settled()):
            yield Step(settled=settled)
            if time.monotonic() > give_up:
                raise DemoStalled(
                    f"{settled} of {self.invoices} invoices were settled in {self._budget:.0f} seconds",
                    remedy="Try again on a less loaded machine; then report it.",
                )
            time.sleep(0.1)
        yield Step(settled=settled)
