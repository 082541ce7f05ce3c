"""The first part of the demo: invoices are settled while a worker is frozen and another one killed."""

import signal
from collections.abc import Callable, Iterator
from typing import Any, LiteralString

import psycopg

from onecommit.demo.children import Child, Children
from onecommit.demo.invoices import create_invoices
from onecommit.demo.steps import Progress, Step

_SETTLED = "select count(*) from invoice where state <> 'open'"


class InvoiceCourse:
    """What happens, in order, and to whom."""

    def __init__(
        self,
        children: Children,
        connect: Callable[[], psycopg.Connection[Any]],
        *,
        invoices: int,
        budget: float,
    ) -> None:
        self._children = children
        self._connect = connect
        self._invoices = invoices
        self._progress = Progress(
            part="invoices settled",
            total=invoices,
            count=lambda: self._count(_SETTLED),
            budget=budget,
        )

    def run(self) -> Iterator[Step]:
        """Settle all invoices."""
        with self._connect() as conn:
            create_invoices(conn, self._invoices)
        tell, watch = self._progress.tell, self._progress.watch
        yield tell(f"{self._invoices} invoices and their jobs: one transaction")
        first, frozen = self._children.worker("invoices"), self._children.worker("invoices")
        yield tell("two workers started")
        yield from watch(lambda settled: settled >= self._invoices // 4)
        frozen.send_signal(signal.SIGSTOP)
        yield tell(f"worker {frozen.pid} frozen (SIGSTOP)")
        yield from watch(lambda settled: settled >= self._invoices // 2)
        first.kill()
        self._children.worker("invoices")
        yield tell(f"worker {first.pid} killed (SIGKILL), one started")
        yield from watch(lambda _: self._is_given_up(frozen))
        frozen.send_signal(signal.SIGCONT)
        yield tell(f"worker {frozen.pid} thawed: its attempts are stale")
        yield from watch(lambda settled: settled == self._invoices)
        self._children.stop_workers()

    def _is_given_up(self, worker: Child) -> bool:
        """Whether the others took the worker for dead, and what it had not begun to commit is open no more."""
        return not self._count(
            "select count(*) from onecommit.list_workers() where ended_at is null and (info ->> 'pid')::int = %s",
            worker.pid,
        )

    def _count(self, query: LiteralString, *arguments: int) -> int:
        with self._connect() as conn:
            (count,) = conn.execute(query, arguments).fetchone() or (0,)
        return int(count)
