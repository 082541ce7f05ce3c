"""The time that decides is read under the lock of the Work: who waited for it past a cutoff finds it closed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from onecommit.domain.work import Safety

from tests.engine import Engine
from tests.moving_clock import MovingClock
from tests.races.work_locks import HOLD
from tests.works import NOON, SECOND, Operator, Runtime, Works

pytestmark = pytest.mark.pg

DEADLINE = 10 * SECOND


@pytest.fixture(autouse=True)
def moving_clock(works: Works) -> None:
    """While a call waits; `works` lets the clock run again afterwards."""
    works.clock = MovingClock(works.store)


def waited(
    works: Works, lock: str, engine: Engine, call: Callable[[], Any], *, time: timedelta = DEADLINE
) -> Any:
    """What a call says if that much time goes by while it waits for the lock."""
    holder = works.store.engine().begin()
    holder.sql(HOLD[lock])
    with works.store.blocked(engine, call, by=holder) as answer:
        works.clock.pass_(time)
        holder.rollback()
    return answer.result()


def claimed_with_a_deadline(
    works: Works, safety: Safety = Safety.PROVIDER_KEYED
) -> tuple[Runtime, Any]:
    runtime = works.runtime()
    return runtime, runtime.take(works.accept(safety=safety, deadline=NOON + DEADLINE))


def permit(runtime: Runtime, claimed: Any) -> Any:
    return runtime.permit(claimed)


def admit(runtime: Runtime, claimed: Any) -> Any:
    return runtime.admit(claimed)


def complete(runtime: Runtime, claimed: Any) -> Any:
    return runtime.complete(claimed)


STEPS = {
    "permit": (permit, lambda *_: None, "granted"),
    "admit": (admit, permit, "admitted"),
    "complete": (complete, Runtime.invoke, "completed"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("late", [True, False])
def test_a_step_of_the_runtime(works: Works, step: str, late: bool):
    """At the deadline the lease has ended too; a microsecond before, it goes on."""
    run, prepare, done = STEPS[step]
    runtime, claimed = claimed_with_a_deadline(works)
    prepare(runtime, claimed)
    time = DEADLINE if late else DEADLINE - timedelta(microseconds=1)
    answer = waited(works, "work", runtime.engine, lambda: run(runtime, claimed), time=time)
    assert (answer.outcome == done) is not late
    assert answer.code == ("ASDUR105" if late else None)


@pytest.mark.parametrize("late", [True, False])
def test_a_handoff(works: Works, late: bool):
    """What held when the caller asked may be over when it has the row."""
    runtime, claimed = claimed_with_a_deadline(works)
    runtime.invoke(claimed)
    store_id = str(works.value("select store_id from onecommit.store_status()"))
    sent = runtime.fence(claimed) | {"p_store_id": store_id}
    engine = works.engine("work_acceptor")
    time = DEADLINE if late else DEADLINE - timedelta(microseconds=1)
    [answer] = waited(works, "work", engine, lambda: engine.call("handoff_lock", **sent), time=time)
    assert (answer.outcome, answer.code) == (("refused", "ASDUR105") if late else ("held", None))


@pytest.mark.parametrize("late", [True, False])
def test_a_renewal_and_a_claim_that_wait_for_the_scope(works: Works, late: bool):
    """They pass by a locked row, so the scope's lock is where they can wait."""
    runtime, claimed = claimed_with_a_deadline(works)
    other = works.accept(deadline=NOON + DEADLINE)
    time = DEADLINE / 2 if late else timedelta(0)
    [renewed] = waited(works, "scope", runtime.engine, lambda: runtime.renew(claimed), time=time)
    assert renewed.outcome == "renewed"
    [renewed] = waited(works, "scope", runtime.engine, lambda: runtime.renew(claimed), time=time)
    assert renewed.outcome == ("stale" if late else "renewed")
    works.clock.stop()
    item = (other.work_id, other.revision)
    time = DEADLINE if late else timedelta(0)
    [found] = waited(works, "scope", runtime.engine, lambda: runtime.claim(item), time=time)
    assert (found.outcome, found.code) == (("moved", "ASDUR121") if late else ("claimed", None))


def retry(operator: Operator, work_id: int, revision: int) -> Any:
    return operator.retry_safe(work_id, revision)


def resolve(operator: Operator, work_id: int, revision: int) -> Any:
    return operator.resolve(work_id, revision, "not_applied")


def cancel(operator: Operator, work_id: int, revision: int) -> Any:
    return operator.cancel(work_id)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("command", [retry, resolve])
def test_a_command_that_would_reopen_the_work(
    works: Works, command: Callable[..., Any], late: bool
):
    """Too late it grants no attempt; proof is recorded and fails the Work."""
    safety = Safety.IDEMPOTENT if command is retry else Safety.MANUAL_RESOLUTION
    runtime, claimed = claimed_with_a_deadline(works, safety)
    runtime.invoke(claimed)
    revision = runtime.complete(claimed, "ambiguous").revision
    operator = works.operator()
    answer = waited(
        works,
        "work",
        operator.engine,
        lambda: command(operator, claimed.work_id, revision),
        time=DEADLINE if late else timedelta(0),
    )
    assert answer.code == ("ASDUR121" if late else None)
    state = works.row(claimed.work_id)["state"]
    if not late:
        assert state == "retry_wait"
    else:
        assert state == ("failed" if command is resolve else "suspended_ambiguous_external_outcome")


@pytest.mark.parametrize("late", [True, False])
def test_a_cancellation_of_an_attempt_whose_lease_ends_meanwhile(works: Works, late: bool):
    """A live one is asked to stop, a lost one waits for evidence."""
    runtime, claimed = claimed_with_a_deadline(works)
    runtime.invoke(claimed)
    operator = works.operator()
    answer = waited(
        works,
        "work",
        operator.engine,
        lambda: cancel(operator, claimed.work_id, 0),
        time=DEADLINE if late else timedelta(0),
    )
    assert answer.outcome == ("suspended" if late else "requested")
