"""The second part of the demo: a provider that does not always answer, and a worker killed at its calls."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from onecommit.demo.children import Children
from onecommit.demo.commands import reconcile, shown
from onecommit.demo.journal import read_journal
from onecommit.demo.orders import ORDERS, accept_orders, app
from onecommit.demo.steps import Progress, Step
from onecommit.demo.worker_process import WORK_SLOTS

_DECIDED = """
select count(*) from onecommit.list_work(null, null, false, null, 1000, null)
where terminal_at is not null or state like 'suspended%'
"""
_TO_RECONCILE = """
select work_id from onecommit.list_work(null, null, true, null, 1000, null) where action = 'reconcile' order by work_id
"""


class WorkCourse:
    """What happens, in order, and to whom."""

    def __init__(
        self,
        children: Children,
        connect: Callable[[], psycopg.Connection[Any]],
        *,
        journal: Path,
        budget: float,
    ) -> None:
        self._children = children
        self._connect = connect
        self._journal = journal
        self._classes = len(app.registry.work)
        self._progress = Progress(
            part="Work decided",
            total=ORDERS * self._classes,
            count=self._decided,
            budget=budget,
        )

    def run(self) -> Iterator[Step]:
        """Have all Work done, or wait for somebody."""
        port = self._children.provider(self._journal)
        with self._connect() as conn:
            accept_orders(conn)
        tell, watch = self._progress.tell, self._progress.watch
        yield tell(f"{ORDERS} orders, Work of {self._classes} safety classes: one transaction")
        # Its calls never time out, so it ends up with every slot at the silent provider.
        patient = self._children.worker("work", **_provider(port, patience=600))
        yield tell("a provider that does not always answer, and a worker started")
        calls = WORK_SLOTS * self._classes
        yield from watch(lambda _: self._unanswered() == calls)
        patient.kill()
        yield tell(
            f"worker {patient.pid} killed (SIGKILL) after {calls} admissions without an answer"
        )
        self._children.worker("work", **_provider(port, patience=3))
        yield tell("another worker started, which waits three seconds for an answer")
        yield from watch(lambda decided: decided == self._progress.total)
        commands = [reconcile(work_id) for work_id in self._to_reconcile()]
        yield tell(f"{len(commands)} times the provider is asked: {shown(commands[0])}")
        self._children.commands(commands, ONECOMMIT_ACTOR="demo", **_provider(port, patience=30))
        yield from watch(lambda decided: decided == self._progress.total)
        self._children.stop_workers()

    def _unanswered(self) -> int:
        return sum(not call.answered for call in read_journal(self._journal))

    def _to_reconcile(self) -> list[int]:
        with self._connect() as conn:
            return [work_id for (work_id,) in conn.execute(_TO_RECONCILE)]

    def _decided(self) -> int:
        with self._connect() as conn:
            (count,) = conn.execute(_DECIDED).fetchone() or (0,)
        return int(count)


def _provider(port: int, *, patience: int) -> dict[str, str]:
    return {"ONECOMMIT_DEMO_PROVIDER": str(port), "ONECOMMIT_DEMO_PATIENCE": str(patience)}
