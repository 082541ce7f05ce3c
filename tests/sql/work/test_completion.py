"""How an attempt ends: recorded once, told again, or kept aside."""

from datetime import timedelta
from typing import Any

import pytest

from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkPlan, WorkRetry

from tests.sql.work.rows import SUSPENDED
from tests.works import NOON, SECOND, Works

pytestmark = pytest.mark.pg

ZERO = timedelta(0)
HOUR = timedelta(hours=1)
LEASE = WorkRetry().lease


def planned(*offsets: timedelta, circuit: timedelta) -> dict[str, Any]:
    """What a request says of a fixed plan."""
    retry = WorkRetry(max_attempts=len(offsets))
    return {"plan": WorkPlan(offsets=offsets, circuit=circuit), "retry": retry}


@pytest.mark.parametrize(
    ("event", "state", "code", "outcome"),
    [
        ("retry_before_effect", "retry_wait", "app.busy", "proven_no_effect"),
        ("exception", "retry_wait", "app.busy", "ambiguous"),
        ("failed_terminal", "suspended_ambiguous_external_outcome", "ASDUR106", "ambiguous"),
        ("ambiguous", "suspended_ambiguous_external_outcome", "ASDUR106", "ambiguous"),
        ("compatibility", "suspended_ambiguous_external_outcome", "ASDUR106", "ambiguous"),
    ],
)
def test_how_an_invocation_ends(works: Works, event: str, state: str, code: str, outcome: str):
    """What the application said stands in the history, also where the code is ours."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    done = runtime.complete(claimed, event, code="app.busy")
    assert (done.outcome, done.state, done.code) == ("completed", state, code)
    assert works.permits(claimed.work_id) == [(1, outcome, True)]
    said = works.value(
        "select application_code from onecommit.work_history where event = %s", event
    )
    assert said == "app.busy"


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ("retry_before_effect", "retry_wait"),
        ("exception", "retry_wait"),
        ("failed_terminal", "failed"),
        ("ambiguous", "retry_wait"),
        ("compatibility", "retry_wait"),
    ],
)
def test_how_an_attempt_without_a_permit_ends(works: Works, event: str, state: str):
    """Nothing can have happened: it waits out its delay, or fails."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept(safety=Safety.MANUAL_RESOLUTION))
    done = runtime.complete(claimed, event)
    assert (done.outcome, done.state) == ("completed", state)
    if state == "retry_wait":
        assert done.eligible_at == NOON + SECOND


@pytest.mark.parametrize("safety", Safety)
@pytest.mark.parametrize("event", ["exception", "failed_terminal", "ambiguous", "compatibility"])
def test_an_unknown_end_after_a_permit_is_no_failure_though_nothing_was_admitted(
    works: Works, event: str, safety: Safety
):
    """A failover may have lost the admission before anybody rotated the epoch. Evidence decides, as of any other."""
    runtime, operator = works.runtime(), works.operator()
    claimed = runtime.take(works.accept(safety=safety))
    runtime.permit(claimed)
    done = runtime.complete(claimed, event)
    retried = event == "exception" and safety in (Safety.IDEMPOTENT, Safety.PROVIDER_KEYED)
    assert done.state == ("retry_wait" if retried else SUSPENDED[safety])
    assert works.permits(claimed.work_id) == [(1, "ambiguous", False)]
    canceled = operator.cancel(claimed.work_id)
    assert canceled.state == SUSPENDED[safety]
    if safety is not Safety.RECONCILE_BEFORE_RETRY:
        found = operator.resolve(claimed.work_id, canceled.revision, "not_applied")
        assert found.state == "canceled_before_effect"


def test_proof_that_nothing_began_is_taken_after_a_permit(works: Works):
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept(safety=Safety.MANUAL_RESOLUTION))
    runtime.permit(claimed)
    done = runtime.complete(claimed, "retry_before_effect")
    assert (done.state, done.eligible_at) == ("retry_wait", NOON + SECOND)
    assert works.permits(claimed.work_id) == [(1, "proven_no_effect", False)]


def test_attempts_are_limited_however_they_end(works: Works):
    """Also by ends that say they are ambiguous and were never admitted."""
    works.clock.stop()
    runtime = works.runtime()
    work = works.accept(retry=WorkRetry(max_attempts=2))
    assert runtime.complete(runtime.take(work), "ambiguous").state == "retry_wait"
    works.clock.pass_(SECOND)
    [again] = runtime.claim(*works.due())
    assert runtime.complete(again, "ambiguous").state == "failed"


def test_a_success_needs_an_admission(works: Works):
    """Without one nothing can have been done; nothing is recorded either."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    for prepare in (lambda _: None, runtime.permit):
        prepare(claimed)
        before = works.everything()
        done = runtime.complete(claimed)
        assert (done.outcome, done.code) == ("refused", "ASDUR116")
        assert works.everything() == before


@pytest.mark.parametrize("event", ["succeeded", "exception", "failed_terminal"])
def test_the_same_completion_again_is_told_so(works: Works, event: str):
    """Also when the Work has gone on meanwhile; nothing is written."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    first = runtime.complete(claimed, event)
    if first.state == "retry_wait":
        works.clock.pass_(SECOND)
        works.runtime().claim(*works.due())
    before = works.everything()
    again = runtime.complete(claimed, event)
    assert (again.outcome, again.code) == ("replayed", None)
    assert again.state == works.row(claimed.work_id)["state"]
    assert works.everything() == before


def test_a_stale_completion_is_kept_once_and_changes_nothing(works: Works):
    """By fence, event and digest."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    works.clock.pass_(LEASE)
    before = works.row(claimed.work_id)
    for result in (b"1", b"1", b"2"):
        done = runtime.complete(claimed, result=result)
        assert (done.outcome, done.code) == ("quarantined", "ASDUR105")
    runtime.complete(claimed, "exception")
    runtime.complete(claimed, p_owner=99)
    kept = works.store.observer.execute(
        "select event, observation, code from onecommit.work_history where observation_sha256 is not null order by history_id"
    ).fetchall()
    assert kept == [
        ("quarantined_succeeded", b"1", "ASDUR105"),
        ("quarantined_succeeded", b"2", "ASDUR105"),
        ("quarantined_exception", None, "ASDUR105"),
        ("quarantined_succeeded", b"{}", "ASDUR105"),
    ]
    assert works.row(claimed.work_id) == before
    assert works.permits(claimed.work_id) == [(1, "granted", True)]


def test_a_completion_of_finished_work_is_kept_aside(works: Works):
    """What another one says of it later: 110."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    runtime.complete(claimed)
    done = runtime.complete(claimed, result=b"other")
    assert (done.outcome, done.code, done.state) == ("quarantined", "ASDUR110", "succeeded")
    assert works.value("select result from onecommit.work_result") == b"{}"


def test_work_that_is_not_there_is_not_found(works: Works):
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    for step in (runtime.permit, runtime.admit, runtime.suspend):
        assert step(claimed, p_work_id=0).code == "ASDUR111"
    done = runtime.complete(claimed, p_work_id=0)
    assert (done.outcome, done.code, done.state) == ("refused", "ASDUR111", None)


def test_slots_of_a_plan_are_used_one_by_one_and_exhausted(works: Works):
    """A lost claim uses its slot; the last one's failure closes the admission for good."""
    works.clock.stop()
    runtime = works.runtime()
    work = works.accept(**planned(ZERO, 5 * SECOND, 6 * SECOND, circuit=HOUR))
    assert runtime.complete(runtime.take(work), "exception").eligible_at == NOON + 5 * SECOND
    works.clock.pass_(5 * SECOND)
    runtime.claim(*works.due())
    works.clock.pass_(LEASE)
    runtime.claim(*works.due())
    assert works.row(work.work_id)["state"] == "retry_wait"
    [last] = runtime.claim(*works.due())
    assert last.attempt == 3
    done = runtime.complete(last, "exception")
    assert (done.state, done.code) == ("failed", "ASDUR120")
    assert works.row(work.work_id)["execution_admission_closed_reason"] == "attempts"


def test_witnesses_belong_to_execution_policies(works: Works):
    """Legacy Work that fails for good has none, and an operator may grant an attempt more."""
    runtime = works.runtime()
    work = works.accept(retry=WorkRetry(max_attempts=1))
    claimed = runtime.take(work)
    runtime.invoke(claimed)
    assert runtime.complete(claimed, "exception").code == "ASDUR106"
    assert works.row(work.work_id)["execution_admission_closed_at"] is None
