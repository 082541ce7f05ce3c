"""Schema, scope, Work, dispatch, permit, history: the one order of locks, at every operation of the Work runtime.

Whoever holds one of them stops the operation there. Then it holds those before it and has not touched those after it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from onecommit.domain.work_policy import WorkPlan, WorkRetry

from tests.races.work_locks import (
    HOLD,
    answer_after_a_rotation,
    before,
    held_at,
    locked_rows,
    reached,
)
from tests.works import SECOND, Runtime, Works

pytestmark = pytest.mark.pg

ROWS = ("work", "dispatch", "permit")
LEASE = WorkRetry().lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is called after how much preparation, and the rows that it locks in turn."""

    run: Callable[[Works, Runtime, Any], Any]
    rows: tuple[str, ...]
    prepare: Callable[[Works, Runtime, Any], Any] = lambda *_: None
    skips: bool = False
    """It passes by a locked row of Work."""
    claims: bool = False
    """It holds the lock of its request."""

    @property
    def advisory(self) -> tuple[str, ...]:
        return ("schema", "scope", "request") if self.claims else ("schema", "scope")


def permitted(works: Works, runtime: Runtime, claimed: Any) -> None:
    assert runtime.permit(claimed).outcome == "granted"


def admitted(works: Works, runtime: Runtime, claimed: Any) -> None:
    runtime.invoke(claimed)


def expired(works: Works, runtime: Runtime, claimed: Any) -> None:
    runtime.invoke(claimed)
    works.clock.pass_(LEASE)


def closed(works: Works, runtime: Runtime, claimed: Any) -> None:
    permitted(works, runtime, claimed)
    works.clock.pass_(10 * SECOND)


def unclaimed(works: Works, runtime: Runtime, claimed: Any) -> None:
    """Wait for the second attempt, so that there is a permit of the first."""
    permitted(works, runtime, claimed)
    runtime.complete(claimed, "exception")
    works.clock.pass_(SECOND)


def claim(works: Works, runtime: Runtime, claimed: Any) -> Any:
    """At any revision: what is due is read before anything is locked."""
    revision = works.row(claimed.work_id)["revision"]
    return runtime.claim((claimed.work_id, revision))


OPERATIONS = {
    "claim": Operation(
        run=claim, prepare=unclaimed, rows=("work", "dispatch"), skips=True, claims=True
    ),
    "recovery": Operation(run=claim, prepare=expired, rows=ROWS, skips=True, claims=True),
    "renew": Operation(
        run=lambda _, r, c: r.renew(c), prepare=permitted, rows=("work", "dispatch"), skips=True
    ),
    "permit": Operation(run=lambda _, r, c: r.permit(c), rows=("work", "dispatch")),
    "admit": Operation(run=lambda _, r, c: r.admit(c), prepare=permitted, rows=("work", "permit")),
    "admit at the cutoff": Operation(run=lambda _, r, c: r.admit(c), prepare=closed, rows=ROWS),
    "complete": Operation(
        run=lambda _, r, c: r.complete(c, "exception"), prepare=admitted, rows=ROWS
    ),
    "succeed": Operation(run=lambda _, r, c: r.complete(c), prepare=admitted, rows=ROWS),
    "suspend": Operation(run=lambda _, r, c: r.suspend(c), rows=("work", "dispatch")),
}
STOPS = [
    pytest.param(operation, lock, id=f"{name}-at-{lock}")
    for name, operation in OPERATIONS.items()
    for lock in (*operation.advisory, *operation.rows)
    if not (operation.skips and lock == "work")
]


def prepared(works: Works, operation: Operation) -> tuple[Runtime, Any]:
    """Work with a plan of two slots, its attempt at the operation's door."""
    works.clock.stop()
    runtime = works.runtime()
    plan = WorkPlan(offsets=(0 * SECOND, SECOND), circuit=10 * SECOND)
    claimed = runtime.take(works.accept(plan=plan, retry=WorkRetry(max_attempts=2)))
    operation.prepare(works, runtime, claimed)
    return runtime, claimed


@pytest.mark.parametrize(("operation", "lock"), STOPS)
def test_each_lock_is_waited_for_with_exactly_the_earlier_ones_held(
    works: Works, operation: Operation, lock: str
):
    """Nothing later has been touched, and no history is written."""
    runtime, claimed = prepared(works, operation)
    held = held_at(works, lock, runtime.engine, lambda: operation.run(works, runtime, claimed))
    assert held == before(lock, (*operation.advisory, *operation.rows))


@pytest.mark.parametrize(
    "operation", [pytest.param(o, id=name) for name, o in OPERATIONS.items() if o.skips]
)
def test_claims_and_renewals_pass_by_locked_work(works: Works, operation: Operation):
    """So neither a handoff nor an operator stalls a heartbeat; nothing is changed."""
    runtime, claimed = prepared(works, operation)
    holder = works.store.engine().begin()
    holder.sql(HOLD["work"])
    before_it = works.everything()
    [row] = operation.run(works, runtime, claimed)
    assert row.outcome in {"lost", "busy"}
    assert works.everything() == before_it


@pytest.mark.parametrize("operation", [pytest.param(o, id=name) for name, o in OPERATIONS.items()])
def test_the_locks_end_with_the_transaction(works: Works, operation: Operation):
    runtime, claimed = prepared(works, operation)
    operation.run(works, runtime, claimed)
    assert reached(works, runtime.engine) == set()
    assert locked_rows(works) == set()


@pytest.mark.parametrize("operation", [pytest.param(o, id=name) for name, o in OPERATIONS.items()])
def test_an_operation_that_waited_for_a_rotation_is_fenced(works: Works, operation: Operation):
    """The epoch is read under the schema's lock; nothing of the older one is written."""
    runtime, claimed = prepared(works, operation)
    before_it = works.everything()
    answer = answer_after_a_rotation(
        works.store, runtime.engine, lambda: operation.run(works, runtime, claimed)
    )
    [row] = answer if isinstance(answer, list) else [answer]
    assert row.code == "ASDUR108"
    assert works.everything() == before_it
