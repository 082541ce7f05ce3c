"""Cancelling one item, and disabling a scope: nothing starts any more, and no unknown outcome is called off."""

from itertools import product

import pytest

from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkRetry

from tests.sql.work.rows import SUSPENDED
from tests.stores import Store
from tests.works import SECOND, Runtime, Works

pytestmark = pytest.mark.pg

LEASE = WorkRetry().lease
STAGES = ("pending", "claimed", "permitted", "admitted", "expired", "unknown", "known_absent")


def reach(works: Works, runtime: Runtime, stage: str, safety: str) -> int:
    """The id of Work that got to this stage."""
    work = works.accept(safety=Safety(safety))
    if stage == "pending":
        return work.work_id
    claimed = runtime.take(work)
    if stage != "claimed":
        assert runtime.permit(claimed).outcome == "granted"
    if stage not in ("claimed", "permitted"):
        assert runtime.admit(claimed).outcome == "admitted"
    if stage == "expired":
        works.clock.pass_(LEASE)
    if stage == "unknown":
        runtime.complete(claimed, "exception")
    if stage == "known_absent":
        runtime.complete(claimed, "retry_before_effect")
    return work.work_id


def unresolved(stage: str) -> bool:
    return stage in ("admitted", "expired", "unknown")


@pytest.mark.parametrize(("stage", "safety"), list(product(STAGES, SUSPENDED)))
def test_cancel(works: Works, stage: str, safety: str):
    """Before an effect it is canceled; a live admitted attempt is asked; else evidence is waited for."""
    works.clock.stop()
    work_id = reach(works, works.runtime(), stage, safety)
    answer = works.operator().cancel(work_id)
    row = works.row(work_id)
    if stage == "admitted":
        assert (answer.outcome, row["state"]) == ("requested", "cancel_pending")
        assert row["lease_owner"] is not None
    elif unresolved(stage):
        assert (answer.outcome, row["state"]) == ("suspended", SUSPENDED[safety])
        assert answer.code == "ASDUR106"
    else:
        assert (answer.outcome, row["state"]) == ("canceled", "canceled_before_effect")
        assert all(outcome == "proven_no_effect" for _, outcome, _ in works.permits(work_id))
    assert row["cancel_requested_at"] is not None
    assert (answer.state, answer.revision) == (row["state"], row["revision"])


@pytest.mark.parametrize(("stage", "safety"), list(product(STAGES, SUSPENDED)))
def test_disable(works: Works, stage: str, safety: str):
    """As cancelling, but the lease of a live attempt goes too; its completion is only kept aside."""
    works.clock.stop()
    runtime = works.runtime()
    work_id = reach(works, runtime, stage, safety)
    answer = works.operator().disable()
    row = works.row(work_id)
    assert (answer.outcome, answer.generation, answer.projected) == ("disabled", 2, 1)
    expected = SUSPENDED[safety] if unresolved(stage) else "canceled_before_effect"
    assert row["state"] == expected
    assert row["lease_owner"] is None
    assert works.events(work_id)[-1] == "disable"
    outcomes = {outcome for _, outcome, _ in works.permits(work_id)}
    assert outcomes <= {"ambiguous" if unresolved(stage) else "proven_no_effect"}
    assert works.due() == []


def test_a_disabled_scope_is_a_tombstone(works: Works):
    """It accepts, claims and completes nothing, answers for its commands, and cannot be disabled again."""
    runtime, operator = works.runtime(), works.operator()
    live, waiting = works.accept(), works.accept()
    claimed = runtime.take(live)
    runtime.invoke(claimed)
    first = operator.disable(p_command_id="off")
    again = operator.disable(p_command_id="off")
    assert (again.outcome, again.generation, again.projected) == ("duplicate", 2, 2)
    assert operator.disable(p_command_id="off", p_reason="another").code == "ASDUR102"
    assert operator.disable(generation=2).code == "ASDUR107"
    assert operator.cancel(live.work_id).code == "ASDUR107"
    late = runtime.complete(claimed)
    assert (late.outcome, late.code) == ("quarantined", "ASDUR107")
    assert runtime.claim((waiting.work_id, 2))[0].code == "ASDUR107"
    assert first.projected == 2
    [history] = works.store.observer.execute(
        "select projected from onecommit.scope_history where event = 'disabled'"
    ).fetchall()
    assert history == (2,)


def test_another_generation_or_scope_is_refused(works: Works):
    """With its code, and nothing is written."""
    works.accept()
    before = works.everything()
    operator = works.operator()
    assert operator.disable(generation=2).code == "ASDUR114"
    assert operator.disable(p_scope_id="nobody").code == "ASDUR113"
    assert operator.disable(p_epoch=1).code == "ASDUR108"
    assert works.everything() == before


def test_a_damaged_scope_is_not_disabled(works: Works):
    """An item without its dispatch row would be left behind."""
    work = works.accept()
    works.store.observer.execute(
        "delete from onecommit.dispatch where work_id = %s", (work.work_id,)
    )
    before = works.everything()
    with pytest.raises(Exception, match="dispatch row") as raised:
        works.operator().disable()
    assert raised.value.sqlstate == "OC012"
    assert works.everything() == before


def test_a_success_after_the_request_counts(works: Works):
    """The effect has happened, so it is told as it is."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    works.operator().cancel(claimed.work_id)
    [renewed] = runtime.renew(claimed)
    assert renewed.cancellation_requested
    assert runtime.complete(claimed).state == "succeeded_after_cancel_requested"


@pytest.mark.parametrize("safety", SUSPENDED)
def test_a_failure_after_the_request_is_not_tried_again(works: Works, safety: str):
    """Without proof it waits for evidence in every class; with proof it is canceled."""
    runtime, operator = works.runtime(), works.operator()
    unknown, absent = (runtime.take(works.accept(safety=Safety(safety))) for _ in range(2))
    for claimed in (unknown, absent):
        runtime.invoke(claimed)
        operator.cancel(claimed.work_id)
    assert runtime.complete(unknown, "exception").state == SUSPENDED[safety]
    assert runtime.complete(absent, "retry_before_effect").state == "canceled_before_effect"


def test_a_command_is_given_once(works: Works):
    """Told again it answers what it led to; another one under its id is refused."""
    operator = works.operator()
    one, other = works.accept(), works.accept()
    first = operator.cancel(one.work_id, p_command_id="stop")
    again = operator.cancel(one.work_id, p_command_id="stop")
    assert again.outcome == "duplicate"
    assert again[1:] == first[1:]
    assert operator.cancel(other.work_id, p_command_id="stop").code == "ASDUR102"
    assert operator.cancel(one.work_id).code == "ASDUR110"
    assert operator.cancel(10**9).code == "ASDUR111"
    assert works.row(other.work_id)["state"] == "pending"


def test_the_same_command_at_once_waits_and_answers_the_same(works: Works, store: Store):
    """Both are the one command."""
    work = works.accept()
    first, second = works.operator(), works.operator()
    with first.engine.open():
        answer = first.cancel(work.work_id, p_command_id="stop")
        with store.blocked(
            second.engine, second.cancel, work.work_id, p_command_id="stop", by=first.engine
        ) as again:
            first.engine.commit()
    assert (answer.outcome, again.result().outcome) == ("canceled", "duplicate")


def test_cancel_and_admission_do_not_both_happen(works: Works, store: Store):
    """Who comes first decides: an admitted attempt is asked to stop, a canceled one is refused."""
    runtime, operator = works.runtime(), works.operator()
    for first_cancels in (True, False):
        claimed = runtime.take(works.accept())
        runtime.permit(claimed)
        if first_cancels:
            with operator.engine.open():
                assert operator.cancel(claimed.work_id).outcome == "canceled"
                with store.blocked(
                    runtime.engine, runtime.admit, claimed, by=operator.engine
                ) as admission:
                    operator.engine.commit()
            assert admission.result().code == "ASDUR110"
        else:
            with runtime.engine.open():
                assert runtime.admit(claimed).outcome == "admitted"
                with store.blocked(
                    operator.engine, operator.cancel, claimed.work_id, by=runtime.engine
                ) as cancel:
                    runtime.engine.commit()
            assert cancel.result().outcome == "requested"


def test_disabling_waits_for_mutations_and_they_for_it(works: Works, store: Store):
    """So no claim of the scope can commit after it."""
    runtime, operator = works.runtime(), works.operator()
    work = works.accept()
    with runtime.engine.open():
        claimed = runtime.take(work)
        with store.blocked(operator.engine, operator.disable, by=runtime.engine) as disabled:
            runtime.engine.commit()
    assert disabled.result().projected == 1
    assert works.row(claimed.work_id)["state"] == "canceled_before_effect"


def test_a_command_of_a_scope_waits_while_it_is_disabled(works: Works, store: Store):
    """And is refused then."""
    one, two = works.operator(), works.operator()
    work = works.accept()
    with one.engine.open():
        one.disable()
        with store.blocked(two.engine, two.cancel, work.work_id, by=one.engine) as cancel:
            one.engine.commit()
    assert cancel.result().code == "ASDUR107"


@pytest.mark.parametrize(
    "wrong",
    [{"p_command_id": ""}, {"p_command_id": "a b"}, {"p_actor": " "}, {"p_reason": None}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_incomplete_command_is_refused(works: Works, wrong: dict):
    """By the name of what is missing; nothing is written."""
    work = works.accept()
    before = works.everything()
    [field] = wrong
    with pytest.raises(Exception, match=field.removeprefix("p_")) as raised:
        works.operator().cancel(work.work_id, **wrong)
    assert raised.value.sqlstate == "22023"
    assert works.everything() == before


def test_a_canceled_item_is_seen_by_no_claim(works: Works):
    """Also one that waited for its next attempt."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.complete(claimed, "retry_before_effect")
    works.operator().cancel(claimed.work_id)
    works.clock.pass_(100 * SECOND)
    assert works.due() == []
