"""Purging keeps what a late duplicate needs; reading shows no payload."""

from datetime import timedelta

import pytest

from onecommit.domain.work import Safety

from tests.work_requests import arguments, request
from tests.works import Runtime, Works

pytestmark = pytest.mark.pg

DAY = timedelta(days=1)


def finish(works: Works, **changes) -> int:
    runtime = works.runtime()
    claimed = runtime.take(works.accept(**changes))
    runtime.invoke(claimed)
    runtime.complete(claimed, result=b'"paid"')
    return claimed.work_id


def test_a_purge_leaves_a_tombstone(works: Works):
    """Payload and result go; identities, digests and history stay, and a late duplicate is answered."""
    works.clock.stop()
    work_id = finish(works, command_id="c", idempotency_key="k")
    history = works.events(work_id)
    assert works.purge(before=works.clock.now) == 0
    assert works.purge(before=works.clock.now + DAY) == 1
    assert works.purge(before=works.clock.now + DAY) == 0
    assert works.value("select count(*) from onecommit.work_payload") == 0
    assert works.value("select count(*) from onecommit.dispatch") == 0
    assert works.value("select result is null and sha256 is not null from onecommit.work_result")
    assert works.row(work_id)["purged_at"] is not None
    assert works.events(work_id) == history
    sent = arguments(
        request(command_id="c", idempotency_key="k"),
        store_id=str(works.value("select store_id from onecommit.store_status()")),
        epoch=works.store.epoch,
    )
    [answer] = works.engine("work_acceptor").call("accept_work", **sent)
    assert (answer.outcome, answer.work_id) == ("duplicate", work_id)
    [action] = works.store.observer.execute(
        "select action, subject, actor from onecommit.operator_action"
    ).fetchall()
    assert action == ("purge_work", "1", "ada")


def test_what_has_not_ended_or_may_have_had_an_effect_is_kept(works: Works):
    """Also a success that an attempt in the dark went before."""
    works.clock.stop()
    runtime = works.runtime()
    open_ = works.accept()
    claimed = runtime.take(works.accept(safety=Safety.PROVIDER_KEYED))
    runtime.invoke(claimed)
    runtime.complete(claimed, "exception")
    works.clock.pass_(DAY / 24)
    [again] = [c for c in runtime.claim(*works.due()) if c.work_id == claimed.work_id]
    runtime.invoke(again)
    assert runtime.complete(again).state == "succeeded"
    assert works.purge(before=works.clock.now + DAY) == 0
    assert works.value("select count(*) from onecommit.work_payload") == 2
    # It has left the list of what a purge looks at, and answers as other ended Work does.
    assert works.value("select array_agg(work_id) from onecommit.dispatch") == [open_.work_id]
    assert works.purge(before=works.clock.now + DAY) == 0
    operator = works.operator()
    revision = works.row(claimed.work_id)["revision"]
    assert operator.resolve(claimed.work_id, revision, "applied").code == "ASDUR110"
    assert operator.cancel(claimed.work_id).code == "ASDUR110"
    assert runtime.complete(claimed, result=b"late").outcome == "quarantined"
    assert operator.disable().outcome == "disabled"


def test_observations_lose_their_bytes(works: Works):
    """Their digests stay."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    works.clock.pass_(DAY / 24)
    assert runtime.complete(claimed, result=b"late").outcome == "quarantined"
    operator = works.operator()
    runtime.claim(*works.due())
    works.clock.pass_(DAY / 24)
    [again] = runtime.claim(*works.due())
    runtime.complete(again, "retry_before_effect")
    revision = operator.cancel(claimed.work_id).revision
    operator.resolve(claimed.work_id, revision, "not_applied")
    assert works.purge(before=works.clock.now + DAY) == 1
    rows = works.store.observer.execute(
        "select observation, observation_sha256 is not null from onecommit.work_history where event like 'quarantined%'"
    ).fetchall()
    assert rows == [(None, True)]


def test_what_is_said_after_the_purge_is_kept_by_its_digest(works: Works):
    """No later purge would take its bytes."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    runtime.complete(claimed, result=b'"paid"')
    assert works.purge(before=works.clock.now + DAY) == 1
    said = [runtime.complete(claimed, result=b"late").outcome for _ in range(2)]
    assert said == ["quarantined", "quarantined"]
    [kept] = works.store.observer.execute(
        "select observation, observation_sha256 is not null from onecommit.work_history where event like 'quarantined%'"
    ).fetchall()
    assert kept == (None, True)


def test_purging_is_bounded(works: Works):
    """The longest ended first."""
    works.clock.stop()
    first = finish(works)
    works.clock.pass_(DAY)
    finish(works)
    assert works.purge(before=works.clock.now + DAY, limit=1) == 1
    assert works.row(first)["purged_at"] is not None
    with pytest.raises(Exception, match="limit"):
        works.purge(before=works.clock.now, limit=0)


def test_readers_see_where_work_stands_and_no_payload(works: Works):
    """By scope, state, contract, and what waits for an operator, with what can be done."""
    runtime = works.runtime()
    waiting = works.accept()
    claimed = runtime.take(works.accept(safety=Safety.MANUAL_RESOLUTION))
    runtime.invoke(claimed)
    runtime.complete(claimed, "exception")
    broken = runtime.take(works.accept())
    runtime.suspend(broken)
    listed = {
        "p_scope_id": None,
        "p_states": None,
        "p_needs_operator": False,
        "p_contract_name": None,
        "p_limit": 10,
        "p_before": None,
    }

    def ids(**filters) -> list[int]:
        return [row.work_id for row in works.read("list_work", **listed | filters)]

    assert ids() == [broken.work_id, claimed.work_id, waiting.work_id]
    assert ids(p_limit=1) == [broken.work_id]
    assert ids(p_before=claimed.work_id) == [waiting.work_id]
    assert ids(p_states=["pending"]) == [waiting.work_id]
    assert ids(p_scope_id="other") == ids(p_contract_name="other") == []
    assert ids(p_needs_operator=True) == [broken.work_id, claimed.work_id]
    actions = {row.work_id: row.action for row in works.read("list_work", **listed)}
    assert actions == {
        waiting.work_id: None,
        claimed.work_id: "resolve",
        broken.work_id: "retry_safe",
    }
    assert works.read("get_work", p_work_id=10**9) == []
    [view] = works.read("get_work", p_work_id=claimed.work_id)
    assert view.unresolved == 1
    assert "payload" not in view._fields
    events = works.read("work_events", p_work_id=claimed.work_id)
    assert [event.event for event in events] == works.events(claimed.work_id)
    [permit] = works.read("work_permits", p_work_id=claimed.work_id)
    assert permit.outcome == "ambiguous"
    counts = {row.state: row.items for row in works.read("work_counts")}
    assert counts == {
        "pending": 1,
        "suspended_manual_resolution": 1,
        "suspended_contract_unavailable": 1,
    }
    [scope] = works.read("get_scope", p_scope_id="tenant-1")
    assert (scope.state, scope.generation, scope.unfinished) == ("active", 1, 3)


def counted(works: Works, **filters: object) -> list[tuple[object, ...]]:
    named = {"p_scope_id": None, "p_contract_name": None, "p_by_scope": False, "p_limit": 10}
    rows = works.read("count_work", **named | filters)
    assert all(row.oldest_at.tzinfo is not None for row in rows)
    return [(row.scope_id, row.contract_name, row.state, row.items) for row in rows]


def test_unfinished_work_is_counted_by_contract_and_scope(works: Works):
    """The largest counts first; what has ended is left out."""
    runtime = works.runtime()
    done = runtime.take(works.accept())
    runtime.invoke(done)
    assert runtime.complete(done).outcome == "completed"
    runtime.take(works.accept())
    for scope in ("tenant-1", "tenant-1", "tenant-2"):
        works.accept(scope=scope)
    works.accept(scope="tenant-2", contract_name="billing.refund")
    charge, refund = "billing.charge", "billing.refund"
    whole = [
        (None, charge, "pending", 3),
        (None, charge, "leased", 1),
        (None, refund, "pending", 1),
    ]
    assert counted(works) == whole
    assert counted(works, p_limit=1) == whole[:1]
    assert counted(works, p_contract_name=refund) == whole[2:]
    assert counted(works, p_by_scope=True, p_scope_id="tenant-2") == [
        ("tenant-2", charge, "pending", 1),
        ("tenant-2", refund, "pending", 1),
    ]
    assert counted(works, p_by_scope=True)[0] == ("tenant-1", charge, "pending", 2)


def test_leases_of_work_are_counted_for_their_worker(works: Works):
    """As one of the things that it holds, until they end."""
    worker = works.store.engine().register()
    runtime = Runtime(works.engine("work_runtime"), owner=worker, epoch=works.store.epoch)
    claimed = runtime.take(works.accept())
    assert [tuple(row) for row in works.read("worker_loads")] == [(worker, 0, 0, 1, False)]
    runtime.invoke(claimed)
    runtime.complete(claimed)
    assert works.read("worker_loads")[0].work == 0
