"""A permit once, an admission once, and neither at a cutoff."""

from datetime import timedelta
from typing import Any

import pytest

from onecommit.domain.work_policy import WorkPlan, WorkRetry

from tests.works import MICROSECOND, NOON, SECOND, Works

pytestmark = pytest.mark.pg

ZERO = timedelta(0)


def planned(*offsets: timedelta, circuit: timedelta) -> dict[str, Any]:
    """What a request says of a fixed plan."""
    retry = WorkRetry(max_attempts=len(offsets))
    return {"plan": WorkPlan(offsets=offsets, circuit=circuit), "retry": retry}


def test_a_permit_is_granted_once_and_told_again(works: Works):
    """The same fence gets the same permit."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    granted, again = runtime.permit(claimed), runtime.permit(claimed)
    assert again == granted._replace(outcome="replayed")
    assert len(works.permits(claimed.work_id)) == 1


def test_an_invocation_is_admitted_once(works: Works):
    """Also a caller that lost the answer is refused: it cannot know that it did not call."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    early = runtime.admit(claimed)
    assert (early.outcome, early.code) == ("refused", "ASDUR116")
    runtime.permit(claimed)
    assert runtime.admit(claimed).outcome == "admitted"
    before = works.everything()
    again = runtime.admit(claimed)
    assert (again.outcome, again.code, again.admitted_at) == ("refused", "ASDUR116", None)
    assert works.everything() == before


FENCE = ("p_attempt", "p_lease_generation", "p_owner")


@pytest.mark.parametrize("field", FENCE)
def test_a_stale_fence_changes_nothing(works: Works, field: str):
    """One part of it is another one's."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    stale = {field: 99}
    before = works.everything()
    for step in (runtime.permit, runtime.admit, runtime.suspend):
        assert step(claimed, **stale).code == "ASDUR105"
    plural = {"p_owner": "p_owner"}.get(field, f"{field}s")
    [renewed] = runtime.renew(claimed, **{plural: 99 if field == "p_owner" else [99]})
    assert (renewed.outcome, renewed.code, renewed.revision) == ("stale", "ASDUR105", None)
    assert works.everything() == before


def test_another_generation_of_the_scope_is_told_apart(works: Works):
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    for step in (runtime.permit, runtime.admit, runtime.suspend):
        assert step(claimed, p_scope_generation=2).code == "ASDUR114"
    done = runtime.complete(claimed, "exception", p_scope_generation=2)
    assert (done.outcome, done.code) == ("quarantined", "ASDUR114")


@pytest.mark.parametrize(
    ("step", "refusal"), [(-MICROSECOND, None), (ZERO, "ASDUR120"), (MICROSECOND, "ASDUR120")]
)
@pytest.mark.parametrize("operation", ["permit", "admit"])
def test_nothing_is_permitted_or_admitted_at_the_cutoff(
    works: Works, operation: str, step: timedelta, refusal: str | None
):
    """The attempt is over and nothing was called: failed, with the witness."""
    works.clock.stop()
    circuit = 10 * SECOND
    work = works.accept(**planned(ZERO, circuit=circuit))
    runtime = works.runtime()
    claimed = runtime.take(work)
    if operation == "admit":
        runtime.permit(claimed)
    works.clock.stop(NOON + circuit + step)
    answer = getattr(runtime, operation)(claimed)
    assert answer.code == refusal
    if refusal:
        found = works.row(work.work_id)
        assert (found["state"], found["code"]) == ("failed", "ASDUR120")
        assert found["execution_admission_closed_reason"] == "circuit"
        assert found["execution_deadline_reached_at"] is None
        assert all(not admitted for _, _, admitted in works.permits(work.work_id))


def test_a_circuit_revokes_no_attempt_that_was_admitted(works: Works):
    """Neither its renewal nor its success, which tells the witness."""
    works.clock.stop()
    work = works.accept(**planned(ZERO, circuit=10 * SECOND))
    runtime = works.runtime()
    claimed = runtime.take(work)
    runtime.invoke(claimed)
    works.clock.pass_(20 * SECOND)
    assert runtime.renew(claimed)[0].outcome == "renewed"
    assert runtime.complete(claimed).state == "succeeded"
    assert works.row(work.work_id)["execution_admission_closed_reason"] == "circuit"


def test_a_late_result_after_the_deadline_is_kept_aside(works: Works):
    """The lease ended with it; a claim that comes by suspends what may have happened."""
    works.clock.stop()
    work = works.accept(deadline=NOON + 10 * SECOND)
    runtime = works.runtime()
    claimed = runtime.take(work)
    assert claimed.lease_expires_at == NOON + 10 * SECOND
    runtime.invoke(claimed)
    works.clock.pass_(10 * SECOND)
    assert runtime.complete(claimed).outcome == "quarantined"
    assert works.row(work.work_id)["state"] == "effect_permitted"
    [row] = works.runtime().claim(*works.due())
    found = works.row(work.work_id)
    assert (row.code, found["state"]) == ("ASDUR106", "suspended_ambiguous_external_outcome")
    assert found["execution_admission_closed_reason"] == "deadline"
