"""A handoff proves that an invocation is still admitted, of Work with a policy and without, and writes nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from onecommit.domain.work_policy import WorkPlan, WorkRetry

from tests.moving_clock import MovingClock
from tests.works import MICROSECOND, NOON, SECOND, Runtime, Works

pytestmark = pytest.mark.pg

LEASE = WorkRetry().lease
ZERO = timedelta(0)
PLANNED = {
    "plan": WorkPlan(offsets=(ZERO, SECOND), circuit=10 * SECOND),
    "retry": WorkRetry(max_attempts=2),
}
POLICIES: dict[str, dict[str, Any]] = {
    "legacy": {},
    "deadline": {"deadline": NOON + 10 * LEASE},
    "plan": PLANNED,
}


def invoked(works: Works, **changes: Any) -> tuple[Runtime, Any]:
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept(**changes))
    runtime.invoke(claimed)
    return runtime, claimed


def arguments(works: Works, runtime: Runtime, claimed: Any, **differences: Any) -> dict[str, Any]:
    store_id = str(works.value("select store_id from onecommit.store_status()"))
    return runtime.fence(claimed) | {"p_store_id": store_id} | differences


def lock(works: Works, runtime: Runtime, claimed: Any, **differences: Any) -> Any:
    """What a caller's transaction of its own is told."""
    sent = arguments(works, runtime, claimed, **differences)
    return works.engine("work_acceptor").call("handoff_lock", **sent)[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_admitted_invocation_is_held_until_its_lease_ends(works: Works, policy: str):
    """Equality is over, of every kind of Work."""
    runtime, claimed = invoked(works, **POLICIES[policy])
    for time, code in ((LEASE - MICROSECOND, None), (LEASE, "ASDUR105")):
        works.clock.stop(NOON + time)
        answer = lock(works, runtime, claimed)
        assert (answer.outcome, answer.code) == ("refused" if code else "held", code)


def test_a_lease_that_was_renewed_holds_beyond_what_was_claimed(works: Works):
    """The row as it is locked decides, not what the executor was given."""
    runtime, claimed = invoked(works)
    works.clock.pass_(LEASE / 2)
    runtime.renew(claimed)
    works.clock.stop(NOON + LEASE)
    assert lock(works, runtime, claimed).outcome == "held"
    works.clock.stop(NOON + 1.5 * LEASE)
    assert lock(works, runtime, claimed).code == "ASDUR105"


def test_a_circuit_revokes_no_invocation_that_was_admitted(works: Works):
    """It is about beginning."""
    runtime, claimed = invoked(works, **PLANNED)
    works.clock.pass_(20 * SECOND)
    assert lock(works, runtime, claimed).outcome == "held"


def test_at_the_deadline_nothing_is_handed_over(works: Works):
    """Neither at the first look nor, in the same transaction, at the second, which has a fresh clock."""
    works.clock = MovingClock(works.store)
    runtime, claimed = invoked(works, deadline=NOON + 10 * SECOND)
    caller = works.engine("work_acceptor").begin()
    sent = arguments(works, runtime, claimed)
    works.clock.stop(NOON + 10 * SECOND - MICROSECOND)
    assert caller.call("handoff_lock", **sent)[0].outcome == "held"
    assert caller.call("handoff_check", **sent)[0].outcome == "held"
    works.clock.stop(NOON + 10 * SECOND)
    assert caller.call("handoff_check", **sent)[0].code == "ASDUR105"
    assert caller.call("handoff_lock", **sent)[0].code == "ASDUR105"
    caller.rollback()


def test_a_handoff_writes_nothing(works: Works):
    """No scope, no permit, no admission, no history: also none of a refusal, and the caller goes on."""
    runtime, claimed = invoked(works)
    before = works.everything()
    caller = works.engine("work_acceptor").begin()
    sent = arguments(works, runtime, claimed)
    assert caller.call("handoff_lock", **sent)[0].outcome == "held"
    assert caller.call("handoff_check", **sent)[0].outcome == "held"
    caller.commit()
    assert works.everything() == before
    assert runtime.complete(claimed).state == "succeeded"


def unpermitted(works: Works, runtime: Runtime) -> Any:
    return runtime.take(works.accept())


def unadmitted(works: Works, runtime: Runtime) -> Any:
    claimed = unpermitted(works, runtime)
    runtime.permit(claimed)
    return claimed


def admitted(works: Works, runtime: Runtime) -> Any:
    claimed = unpermitted(works, runtime)
    runtime.invoke(claimed)
    return claimed


def completed(works: Works, runtime: Runtime) -> Any:
    claimed = admitted(works, runtime)
    runtime.complete(claimed)
    return claimed


def purged(works: Works, runtime: Runtime) -> Any:
    works.clock.stop()
    claimed = completed(works, runtime)
    assert works.purge(before=works.clock.now + SECOND) == 1
    return claimed


def canceled(works: Works, runtime: Runtime) -> Any:
    claimed = admitted(works, runtime)
    works.operator().cancel(claimed.work_id)
    return claimed


def disabled(works: Works, runtime: Runtime) -> Any:
    claimed = admitted(works, runtime)
    works.operator().disable()
    return claimed


REFUSALS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (unpermitted, {}, "ASDUR116"),
    (unadmitted, {}, "ASDUR116"),
    (completed, {}, "ASDUR110"),
    (purged, {}, "ASDUR110"),
    (canceled, {}, "ASDUR116"),
    (disabled, {}, "ASDUR107"),
    (admitted, {"p_scope_id": "nobody"}, "ASDUR113"),
    (admitted, {"p_scope_generation": 2}, "ASDUR114"),
    (admitted, {"p_work_id": 0}, "ASDUR111"),
    (admitted, {"p_attempt": 2}, "ASDUR105"),
    (admitted, {"p_lease_generation": 2}, "ASDUR105"),
    (admitted, {"p_owner": 99}, "ASDUR105"),
    (admitted, {"p_store_id": str(uuid4())}, "ASDUR115"),
    (admitted, {"p_store_id": None}, "ASDUR115"),
    (admitted, {"p_epoch": 1}, "ASDUR108"),
    (admitted, {"p_epoch": None}, "ASDUR108"),
]


@pytest.mark.parametrize(("prepare", "wrong", "code"), REFUSALS)
def test_what_does_not_hold_is_refused_with_its_code(
    works: Works, prepare: Callable[..., Any], wrong: dict[str, Any], code: str
):
    """A refusal writes nothing, and the caller's transaction commits."""
    runtime = works.runtime()
    claimed = prepare(works, runtime)
    before = works.everything()
    caller = works.engine("work_acceptor").begin()
    answer = caller.call("handoff_lock", **arguments(works, runtime, claimed, **wrong))[0]
    assert (answer.outcome, answer.code) == ("refused", code)
    assert caller.value("select 1") == 1
    caller.commit()
    assert works.everything() == before


def test_a_missing_dispatch_row_is_damage(works: Works):
    runtime, claimed = invoked(works)
    works.store.observer.execute("delete from onecommit.dispatch")
    with pytest.raises(psycopg.Error, match="dispatch row") as damaged:
        lock(works, runtime, claimed)
    assert damaged.value.sqlstate == "OC012"
