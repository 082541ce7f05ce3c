"""Discovering and claiming Work: one winner, the same answer again, and nothing that is not what it was."""

import psycopg
import pytest

from onecommit.domain.work_policy import WorkRetry

from tests.works import MICROSECOND, NOON, SECOND, Runtime, Works

pytestmark = pytest.mark.pg

LEASE = WorkRetry().lease


def test_from_acceptance_to_success(works: Works):
    """Each step raises the revision, says what comes next and leaves one row of history."""
    work, runtime = works.accept(), works.runtime()
    [found] = works.discover()
    assert (found.scope_id, found.work_id, found.revision) == ("tenant-1", work.work_id, 1)
    claimed = runtime.take(work)
    assert bytes(claimed.payload) == b'{"cents":100}'
    assert (claimed.attempt, claimed.lease_generation, claimed.scope_generation) == (1, 1, 1)
    assert (claimed.contract_name, claimed.contract_version) == ("billing.charge", "1")
    assert (claimed.revision, claimed.activity_id) == (2, work.activity_id)
    assert works.discover() == []
    permit = runtime.permit(claimed)
    assert (permit.outcome, permit.code) == ("granted", None)
    admitted = runtime.admit(claimed)
    assert (admitted.outcome, admitted.code) == ("admitted", None)
    done = runtime.complete(claimed, result=b'{"id":1}')
    assert (done.outcome, done.state, done.revision) == ("completed", "succeeded", 4)
    assert works.permits(work.work_id) == [(1, "known_succeeded", True)]
    assert works.dispatch(work.work_id)["state"] == "terminal"
    assert works.events(work.work_id) == ["accepted", "claimed", "permit_granted", "succeeded"]
    assert works.value("select result from onecommit.work_result") == b'{"id":1}'


def test_discovery_shows_what_is_due_of_the_contracts_asked_for(works: Works):
    """The longest due first, then by priority; neither the future nor another contract nor a live lease."""
    works.clock.stop()
    second, urgent = works.accept(), works.accept(priority=5)
    works.accept(due_at=NOON + SECOND)
    works.accept(contract_version="2")
    works.clock.pass_(MICROSECOND)
    later = works.accept(priority=9)
    expected = [urgent.work_id, second.work_id, later.work_id]
    assert [d.work_id for d in works.discover()] == expected
    assert [d.work_id for d in works.discover(limit=2)] == expected[:2]
    assert len(works.discover(contract=("billing.charge", "2"))) == 1
    assert works.discover(contract=("billing.refund", "1")) == []


def test_discovery_shows_where_work_is_and_nothing_of_it(works: Works):
    """Neither payload nor identities."""
    works.accept()
    [found] = works.discover()
    assert found._fields == ("scope_id", "work_id", "revision", "priority", "contract")


def test_discovery_shows_due_work_from_its_very_moment(works: Works):
    works.clock.stop()
    works.accept(due_at=NOON + SECOND)
    for step, count in ((SECOND - MICROSECOND, 0), (MICROSECOND, 1)):
        works.clock.pass_(step)
        assert len(works.discover()) == count


@pytest.mark.parametrize(
    ("names", "versions", "limit"),
    [
        (["a"], ["1", "2"], 1),
        ([], [], 1),
        (["a", "a"], ["1", "1"], 1),
        (["a", None], ["1", "1"], 1),
        (["a", "b"], ["1", None], 1),
        (None, ["1"], 1),
        (["a"], None, 1),
        (["a"] * 10_001, [str(n) for n in range(10_001)], 1),
        (["a"], ["1"], 0),
        (["a"], ["1"], 1001),
        (["a"], ["1"], None),
    ],
)
def test_a_discovery_of_nonsense_is_refused(works: Works, names, versions, limit):
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        works.engine("work_dispatcher").call(
            "discover_work_dispatch", p_names=names, p_versions=versions, p_limit=limit
        )


def lost(runtime: Runtime, *item: int, **options) -> str:
    [row] = runtime.claim(item, **options)
    assert row.outcome == "lost"
    assert (row.payload, row.command_id, row.revision) == (None, None, None)
    return row.code


def test_a_claim_asks_for_the_revision_that_was_discovered(works: Works):
    """Something else has happened to the Work since."""
    work, runtime = works.accept(), works.runtime()
    assert lost(runtime, work.work_id, 2) == "ASDUR104"
    assert lost(runtime, work.work_id, 0) == "ASDUR104"
    assert lost(runtime, work.work_id + 1, 1) == "ASDUR104"
    assert runtime.take(work)


def test_a_claim_is_of_its_own_scope_alone(works: Works):
    """Another scope's Work is as good as not there."""
    work = works.accept(scope="tenant-2")
    works.accept()
    assert lost(works.runtime(), work.work_id, 1) == "ASDUR104"
    assert works.row(work.work_id)["state"] == "pending"


def test_work_that_is_not_due_cannot_be_claimed(works: Works):
    works.clock.stop()
    work = works.accept(due_at=NOON + SECOND)
    assert lost(works.runtime(), work.work_id, 1) == "ASDUR104"


def test_the_same_request_of_the_same_owner_gets_the_same_answer(works: Works):
    """The answer was lost; another request, or another owner, gets nothing."""
    work, runtime, other = works.accept(), works.runtime(), works.runtime()
    claimed = runtime.take(work)
    before = works.everything()
    assert runtime.claim((work.work_id, 1), request=1) == [claimed]
    assert lost(runtime, work.work_id, 1, request=2) == "ASDUR104"
    assert lost(other, work.work_id, 1, request=1) == "ASDUR104"
    assert works.everything() == before


def test_a_claim_is_not_adopted_after_its_lease(works: Works):
    works.clock.stop()
    work, runtime = works.accept(), works.runtime()
    runtime.take(work)
    works.clock.pass_(LEASE)
    assert lost(runtime, work.work_id, 1, request=1) == "ASDUR104"


def test_of_many_items_each_gets_its_own_answer_in_the_order_asked(works: Works):
    runtime = works.runtime()
    items = [works.accept() for _ in range(3)]
    runtime.take(items[1])
    rows = runtime.claim(*((w.work_id, 1) for w in reversed(items)))
    assert [r.work_id for r in rows] == [w.work_id for w in reversed(items)]
    assert [r.outcome for r in rows] == ["claimed", "lost", "claimed"]


SCOPE_REFUSALS = {
    "ASDUR107": "update onecommit.scope set state = 'disabled', disabled_at = now(), generation = 2",
    "ASDUR108": None,
    "ASDUR113": "delete from onecommit.scope",
}


@pytest.mark.parametrize("code", SCOPE_REFUSALS)
def test_no_operation_goes_on_in_a_scope_or_an_epoch_that_is_not_there(works: Works, code: str):
    """Each answers with the code and changes nothing, but that a completion under a disabled scope is kept aside."""
    runtime, work = works.runtime(), works.accept()
    claimed = runtime.take(work)
    if statement := SCOPE_REFUSALS[code]:
        works.store.observer.execute(statement)
    else:
        runtime.engine.epoch -= 1
    before = works.everything()
    assert lost(runtime, work.work_id, 1) == code
    [renewed] = runtime.renew(claimed)
    assert (renewed.outcome, renewed.code) == ("stale", code)
    for step in (runtime.permit, runtime.admit, runtime.suspend):
        answer = step(claimed)
        assert (answer.outcome, answer.code) == ("refused", code)
    assert works.everything() == before
    done = runtime.complete(claimed, "exception")
    assert (done.outcome, done.code) == (
        "quarantined" if code == "ASDUR107" else "refused",
        code,
    )
    assert works.row(work.work_id)["state"] == "leased"


def test_a_corrupted_payload_is_not_handed_out(works: Works):
    """It is not what was accepted: an operator has to look."""
    work, runtime = works.accept(), works.runtime()
    works.store.observer.execute("update onecommit.work_payload set payload = 'other'")
    [row] = runtime.claim((work.work_id, 1))
    assert (row.outcome, row.code, row.payload) == ("moved", "ASDUR109", None)
    assert works.row(work.work_id)["state"] == "suspended_contract_unavailable"
    assert works.dispatch(work.work_id)["state"] == "suspended"
    assert works.events(work.work_id)[-1] == "payload_corrupted"


def test_a_missing_dispatch_row_is_damage(works: Works):
    """Said by every operation that would write it; nothing is changed."""
    runtime = works.runtime()
    steps = {
        "permit": runtime.permit,
        "suspend": runtime.suspend,
        "complete": lambda c: runtime.complete(c, "exception"),
    }
    work = works.accept()
    works.store.observer.execute("delete from onecommit.dispatch")
    with pytest.raises(psycopg.Error) as caught:
        runtime.claim((work.work_id, 1))
    assert caught.value.sqlstate == "OC012"
    for name, step in steps.items():
        claimed = runtime.take(works.accept())
        works.store.observer.execute("delete from onecommit.dispatch")
        before = works.everything()
        with pytest.raises(psycopg.Error) as caught:
            step(claimed)
        assert caught.value.sqlstate == "OC012", name
        assert works.everything() == before
