"""What a claim finds lost is decided by its safety class, never called again."""

import pytest

from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkRetry

from tests.sql.work.rows import SUSPENDED
from tests.works import MICROSECOND, NOON, SECOND, Runtime, Works

pytestmark = pytest.mark.pg

LEASE = WorkRetry().lease


# How far the lost attempt got, and the state that its Work is found in; s: suspended by the class.
LOST = [
    ("claimed", "idempotent", "retry_wait"),
    ("claimed", "manual_resolution", "retry_wait"),
    ("permitted", "provider_keyed", "retry_wait"),
    ("permitted", "reconcile_before_retry", "retry_wait"),
    ("permitted", "manual_resolution", "retry_wait"),
    ("admitted", "idempotent", "retry_wait"),
    ("admitted", "provider_keyed", "retry_wait"),
    ("admitted", "reconcile_before_retry", "s"),
    ("admitted", "manual_resolution", "s"),
]


def advance(runtime: Runtime, work, stage: str):
    """A claim that got to this stage."""
    claimed = runtime.take(work)
    if stage != "claimed":
        assert runtime.permit(claimed).outcome == "granted"
    if stage == "admitted":
        assert runtime.admit(claimed).outcome == "admitted"
    return claimed


@pytest.mark.parametrize(("stage", "safety", "state"), LOST)
def test_an_expired_lease_is_recovered_by_its_safety_class(
    works: Works, stage: str, safety: str, state: str
):
    """A permit that was not admitted is proof of no effect; an admitted one is ambiguous. Nothing is called again here."""
    works.clock.stop()
    work = works.accept(safety=Safety(safety))
    advance(works.runtime(), work, stage)
    works.clock.pass_(LEASE - MICROSECOND)
    assert works.due() == []
    works.clock.pass_(MICROSECOND)
    [row] = works.runtime().claim(*works.due())
    found = works.row(work.work_id)
    assert row.outcome == "moved"
    assert found["state"] == (SUSPENDED[safety] if state == "s" else state)
    assert row.code == found["code"] == ("ASDUR106" if state == "s" else None)
    outcome = "ambiguous" if stage == "admitted" else "proven_no_effect"
    assert works.permits(work.work_id) == (
        [] if stage == "claimed" else [(1, outcome, stage == "admitted")]
    )
    assert works.events(work.work_id)[-1] == "lease_expired"
    works.clock.pass_(SECOND)
    if state == "s":
        assert works.due() == []
    else:
        assert works.runtime().claim(*works.due())[0].attempt == 2


def test_a_retry_has_a_lease_generation_and_a_permit_of_its_own(works: Works):
    """And the same activity: the provider sees the same key."""
    works.clock.stop()
    work = works.accept()
    advance(works.runtime(), work, "admitted")
    works.clock.pass_(LEASE)
    runtime = works.runtime()
    runtime.claim(*works.due())
    works.clock.pass_(SECOND)
    [again] = runtime.claim(*works.due())
    runtime.invoke(again)
    assert (again.attempt, again.lease_generation) == (2, 2)
    assert again.activity_id == work.activity_id
    assert runtime.complete(again).state == "succeeded"
    assert works.permits(work.work_id) == [(1, "ambiguous", True), (2, "known_succeeded", True)]


@pytest.mark.parametrize("safety", ["idempotent", "provider_keyed"])
def test_an_effect_of_an_earlier_attempt_stays_unknown_whatever_the_later_one_says(
    works: Works, safety: str
):
    """A terminal failure before its own invocation is no proof of absence."""
    works.clock.stop()
    work = works.accept(safety=Safety(safety))
    advance(works.runtime(), work, "admitted")
    works.clock.pass_(LEASE)
    runtime = works.runtime()
    runtime.claim(*works.due())
    works.clock.pass_(SECOND)
    [again] = runtime.claim(*works.due())
    done = runtime.complete(again, "failed_terminal", code="app.gone")
    assert (done.state, done.code) == (SUSPENDED[safety], "ASDUR106")


@pytest.mark.parametrize("stage", ["pending", "claimed", "permitted", "admitted"])
def test_work_of_an_older_epoch_waits_for_an_operator(works: Works, stage: str):
    """Its permit stays as it was: a restore may have lost its admission."""
    works.clock.stop()
    work = works.accept()
    if stage != "pending":
        advance(works.runtime(), work, stage)
    works.clock.pass_(LEASE)
    works.store.observer.execute("update onecommit.work set epoch = epoch - 1")
    permits = works.permits(work.work_id)
    [row] = works.runtime().claim(*works.due())
    assert (row.outcome, row.code) == ("moved", "runtime_epoch_mismatch")
    assert works.row(work.work_id)["state"] == "suspended_ambiguous_external_outcome"
    assert works.permits(work.work_id) == permits
    assert works.due() == []


@pytest.mark.parametrize(
    ("deadline", "elapsed", "due", "code", "reason"),
    [(2, 60, 1, "ASDUR121", "deadline"), (10, 2, 5, "ASDUR120", "elapsed")],
)
def test_work_whose_time_is_over_is_failed_by_the_claim_that_finds_it(
    works: Works, deadline: int, elapsed: int, due: int, code: str, reason: str
):
    """Discovery shows it at the cutoff, also what would have been due after it."""
    works.clock.stop()
    work = works.accept(
        deadline=NOON + deadline * SECOND,
        due_at=NOON + due * SECOND,
        retry=WorkRetry(max_elapsed=elapsed * SECOND),
    )
    works.clock.pass_(2 * SECOND)
    [row] = works.runtime().claim(*works.due())
    assert (row.outcome, row.code) == ("moved", code)
    found = works.row(work.work_id)
    assert (found["state"], found["execution_admission_closed_reason"]) == ("failed", reason)
    assert (found["execution_deadline_reached_at"] is not None) == (reason == "deadline")
