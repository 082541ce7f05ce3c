"""Every cell of the safety classes: what an unknown outcome leads to, and what evidence of it is worth."""

from typing import Any

import pytest

from onecommit.domain.work import Safety

from tests.sql.work.rows import SUSPENDED
from tests.works import SECOND, Operator, Runtime, Works

pytestmark = pytest.mark.pg

SAFE = (Safety.IDEMPOTENT, Safety.PROVIDER_KEYED)
# What the invocation that ended with an exception leads to; evidence that it happened, and that it did not. Of a safe
# class evidence is recorded only after a cancellation: before it, the Work is simply tried again.
MATRIX = {
    Safety.IDEMPOTENT: ("retry_wait", "succeeded_after_cancel_requested", "canceled_before_effect"),
    Safety.PROVIDER_KEYED: (
        "retry_wait",
        "succeeded_after_cancel_requested",
        "canceled_before_effect",
    ),
    Safety.RECONCILE_BEFORE_RETRY: (
        "suspended_reconciliation_required",
        "succeeded",
        "retry_wait",
    ),
    Safety.MANUAL_RESOLUTION: ("suspended_manual_resolution", "succeeded", "retry_wait"),
}
# Whether each way to record evidence is open to the class: an answer, or the refusal's code.
WAYS = {
    Safety.IDEMPOTENT: {"reconcile": "ASDUR116", "resolve": "ASDUR116", "retry_safe": "released"},
    Safety.PROVIDER_KEYED: {
        "reconcile": "ASDUR116",
        "resolve": "ASDUR116",
        "retry_safe": "released",
    },
    Safety.RECONCILE_BEFORE_RETRY: {
        "reconcile": "started",
        "resolve": "ASDUR116",
        "retry_safe": "ASDUR117",
    },
    Safety.MANUAL_RESOLUTION: {
        "reconcile": "ASDUR116",
        "resolve": "recorded",
        "retry_safe": "ASDUR117",
    },
}


def ended(works: Works, safety: Safety, event: str) -> tuple[Runtime, Any, Any]:
    """Who invoked, the claim, and what the completion answered."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept(safety=safety))
    runtime.invoke(claimed)
    return runtime, claimed, runtime.complete(claimed, event)


def record(works: Works, operator: Operator, work_id: int, safety: Safety, evidence: str) -> Any:
    """By the way of the class."""
    result = b'"paid"' if evidence == "applied" else None
    revision = works.row(work_id)["revision"]
    if safety is Safety.RECONCILE_BEFORE_RETRY:
        begun = operator.begin(work_id, p_command_id="ask")
        return operator.finish(work_id, "ask", begun.revision, evidence, result=result)
    return operator.resolve(work_id, revision, evidence, result=result)


@pytest.mark.parametrize("safety", Safety)
def test_an_unknown_outcome_after_the_permit(works: Works, safety: Safety):
    """Tried again with the same provider key under a new claim and permit, or suspended."""
    runtime, claimed, done = ended(works, safety, "exception")
    assert done.state == MATRIX[safety][0]
    works.clock.pass_(SECOND)
    if safety in SAFE:
        [again] = runtime.claim(*works.due())
        runtime.invoke(again)
        assert (again.attempt, again.activity_id) == (2, claimed.activity_id)
        assert works.permits(claimed.work_id) == [(1, "ambiguous", True), (2, "granted", True)]
    else:
        assert done.code == "ASDUR106"
        assert works.due() == []


@pytest.mark.parametrize("safety", Safety)
@pytest.mark.parametrize("evidence", ["applied", "not_applied"])
def test_evidence(works: Works, safety: Safety, evidence: str):
    """It happened: the encoded result ends the Work. It did not: it may be tried again, or is called off."""
    _, claimed, _ = ended(works, safety, "ambiguous")
    operator = works.operator()
    if safety in SAFE:
        operator.cancel(claimed.work_id)
    answer = record(works, operator, claimed.work_id, safety, evidence)
    assert answer.state == MATRIX[safety][1 if evidence == "applied" else 2]
    stored = works.store.observer.execute("select result from onecommit.work_result").fetchall()
    assert stored == ([(b'"paid"',)] if evidence == "applied" else [])
    outcome = "known_succeeded" if evidence == "applied" else "proven_no_effect"
    assert works.permits(claimed.work_id) == [(1, outcome, True)]


@pytest.mark.parametrize("safety", Safety)
def test_evidence_of_an_effect_is_worth_nothing_without_its_result(works: Works, safety: Safety):
    """Nobody could tell the application what its Work led to."""
    _, claimed, _ = ended(works, safety, "ambiguous")
    operator = works.operator()
    if safety in SAFE:
        operator.cancel(claimed.work_id)
    before = works.row(claimed.work_id)
    revision = before["revision"]
    if safety is Safety.RECONCILE_BEFORE_RETRY:
        operator.begin(claimed.work_id, p_command_id="ask")
        answer = operator.finish(claimed.work_id, "ask", revision, "applied")
    else:
        answer = operator.resolve(claimed.work_id, revision, "applied")
    assert (answer.outcome, answer.code) == ("refused", "ASDUR117")
    assert works.row(claimed.work_id) == before


@pytest.mark.parametrize("way", ["reconcile", "resolve", "retry_safe"])
@pytest.mark.parametrize("safety", Safety)
def test_each_class_has_its_way(works: Works, safety: Safety, way: str):
    """And no other; what is refused changes nothing."""
    _, claimed, done = ended(works, safety, "ambiguous")
    assert done.state == SUSPENDED[safety]
    before, operator = works.everything(), works.operator()
    if way == "reconcile":
        answer = operator.begin(claimed.work_id)
    elif way == "resolve":
        answer = operator.resolve(claimed.work_id, done.revision, "not_applied")
    else:
        answer = operator.retry_safe(claimed.work_id, done.revision)
    assert (answer.code if answer.outcome == "refused" else answer.outcome) == WAYS[safety][way]
    if answer.outcome == "refused":
        assert works.everything() == before


@pytest.mark.parametrize("safety", SAFE)
def test_safe_work_that_an_operator_releases_runs_under_a_new_claim_and_permit(
    works: Works, safety: Safety
):
    """With the provider key that the first call had."""
    runtime, claimed, done = ended(works, safety, "ambiguous")
    assert works.operator().retry_safe(claimed.work_id, done.revision).state == "retry_wait"
    [again] = runtime.claim(*works.due())
    runtime.invoke(again)
    assert (again.attempt, again.lease_generation) == (2, 2)
    assert again.activity_id == claimed.activity_id
    assert works.permits(claimed.work_id) == [(1, "ambiguous", True), (2, "granted", True)]


@pytest.mark.parametrize("safety", Safety)
def test_a_cancellation_after_the_permit_changes_nothing_about_it(works: Works, safety: Safety):
    """An unknown outcome waits for evidence of its class, called off or not; nothing failed."""
    works.clock.stop()
    runtime, operator = works.runtime(), works.operator()
    claimed = runtime.take(works.accept(safety=safety))
    runtime.invoke(claimed)
    assert operator.cancel(claimed.work_id).outcome == "requested"
    for event in ("exception", "failed_terminal", "compatibility"):
        done = runtime.complete(claimed, event)
        if event == "exception":
            assert (done.state, done.code) == (SUSPENDED[safety], "ASDUR106")
        else:
            assert done.outcome == "quarantined"
    assert works.permits(claimed.work_id) == [(1, "ambiguous", True)]
