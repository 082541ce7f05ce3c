"""Every operation that runs as its owner, called once with something to do, and with the answer that it gives to anybody."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from onecommit.domain.work import Safety

from tests.attacks.intruders import Target
from tests.engine import Engine
from tests.work_requests import arguments, request
from tests.works import Operator, Runtime

BY = {"p_actor": "mallory", "p_reason": "a look"}


def jobs(engine: Engine, target: Target) -> None:
    """Producer, worker, leader, finalizer, callbacks, operator and reader of jobs."""
    assert len(engine.call("connection_budget")) == 1
    assert engine.call("store_status")[0].active_epoch == engine.epoch
    assert len(engine.call("adopt_lanes", p_queue="q")) == 1
    worker = engine.register()
    assert engine.call("queue_lanes", p_queue="q")[0][0]
    assert engine.heartbeat() is not None
    _closing(engine)
    _callbacks(engine)
    _operators(engine)
    _reading(engine)
    assert engine.call("lead", p_worker=worker, p_ttl_us=60_000_000)[0][0] is True
    assert engine.promote().promoted >= 1
    engine.rescue()
    target.do(
        "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0'"
    )
    assert engine.tend()[0] == "rotate"
    assert len(engine.call("ring_status")) == 2
    engine.retire()
    engine.rescue()


def _closing(engine: Engine) -> None:
    one = engine.enqueue_one()
    [attempt] = engine.claim().attempts
    assert attempt.job_id == one
    engine.set_progress([attempt], {"half": True})
    assert engine.status(attempt).state == "open"
    assert engine.complete_job(attempt, progress={"done": True}).outcome == "completed"
    first, second, third, fourth = engine.take(4)
    assert engine.complete([first]) == ["closed"]
    assert engine.completed([first]) == [True]
    assert engine.finish([second], "retried") == ["closed"]
    assert engine.close_with_follow_ups([third], follow_ups=[(1, {})]) == ["closed"]
    assert engine.finish([fourth], "failed") == ["closed"]
    assert [
        row.job_id for row in engine.call("closed_jobs", p_job_ids=[fourth.job_id], p_kinds=["k"])
    ] == [fourth.job_id]
    engine.call("finalization_status")
    assert engine.retry_dead(fourth.job_id) == {fourth.job_id: "retried"}
    [again] = engine.drain()
    assert again.job_id == fourth.job_id
    assert engine.finish([again], "failed") == ["closed"]
    assert engine.purge_dead(fourth.job_id) == {fourth.job_id: "purged"}


def _callbacks(engine: Engine) -> None:
    waiting, done, failed, retried = engine.take(4)
    callback = engine.callback(waiting)
    engine.call(
        "begin_wait", p_callback=callback, p_job_id=waiting.job_id, p_run_lease=waiting.run_lease
    )
    assert engine.wait_for(waiting, callback) == []
    assert engine.resume_external(callback, {"ok": True}) == "accepted"
    assert engine.wait_for(waiting, callback) == [("resumed", {"ok": True})]
    assert engine.complete([waiting], side=[waiting.job_id]) == ["closed"]
    names = [engine.callback(each) for each in (done, failed, retried)]
    assert engine.complete_external(names[0], {"paid": 1}) == "accepted"
    assert [
        row.job_id for row in engine.call("closed_by_callback", p_callback=names[0], p_kinds=["k"])
    ] == [done.job_id]
    assert engine.fail_external(names[1]) == "accepted"
    assert engine.retry_external(names[2]) == "accepted"


def _operators(engine: Engine) -> None:
    job = engine.enqueue_one()
    assert engine.cancel(job) == {job: "cancelled"}
    assert len(engine.call("cancellations")) == 1
    engine.pause()
    engine.resume()
    engine.call("disable_caller_owned", p_queue="q", **BY)
    engine.call("allow_caller_owned", p_queue="q", **BY)


def _reading(engine: Engine) -> None:
    job = engine.enqueue(2).job_ids[0]
    assert engine.state(job) == "ready"
    assert engine.call(
        "list_jobs", p_state="ready", p_queue="q", p_kind=None, p_limit=10, p_before=None
    )
    assert engine.call(
        "unfinished_jobs", p_states=["ready"], p_queue="q", p_kind=None, p_tags=None, p_limit=10, p_before=None,
    )  # fmt: skip
    assert [row.queue for row in engine.call("list_queues") if row.queue == "q"] == ["q"]
    assert engine.call("list_workers")
    assert engine.call("worker_loads")
    named = {"p_job_id": None, "p_queue": "q", "p_kind": None, "p_limit": 10, "p_before": None}
    engine.call("list_callbacks", **named)
    for function in ("chapter_pins", "dead_letter_counts", "lane_health"):
        engine.call(function)
    assert engine.call("store_health")


def work(engine: Engine, runtime: Runtime, target: Target) -> None:
    """Acceptor, dispatcher, operator, retention and reader of Work; a worker of its own session carries it out."""
    store_id = str(target.value("select store_id from onecommit.store_status()"))
    accepted = [_accept(engine, number, store_id) for number in range(8)]
    found = engine.call(
        "discover_work_dispatch", p_names=["billing.charge"], p_versions=["1"], p_limit=100
    )
    assert [row.work_id for row in found] == [row.work_id for row in accepted]
    engine.call("mark_work_sleeper", p_sleep=True)
    claimed = runtime.claim(*((row.work_id, row.revision) for row in accepted[:6]))
    assert {row.outcome for row in claimed} == {"claimed"}
    _handoff(engine, runtime, claimed[0], store_id)
    operator = Operator(engine)
    for each in claimed[1:]:
        runtime.invoke(each)
        assert runtime.complete(each, "exception").code == "ASDUR106"
    assert operator.cancel(accepted[6].work_id).outcome == "canceled"
    _suspended(engine, operator, [each.work_id for each in claimed[1:]])
    assert operator.disable().outcome == "disabled"
    before = datetime.now(UTC) + timedelta(days=1)
    assert (
        engine.call("purge_work", p_before=before, p_limit=10, p_actor="mallory", p_reason="old")[
            0
        ][0]
        > 0
    )


def _accept(engine: Engine, number: int, store_id: str) -> Any:
    names = {"command_id": f"c{number}", "idempotency_key": f"k{number}"}
    asked = request(safety=Safety.RECONCILE_BEFORE_RETRY, **names)
    sent = arguments(asked, store_id=store_id, epoch=engine.epoch)
    [row] = engine.call("accept_work", **sent)
    assert row.outcome == "accepted", row
    [again] = engine.call("accept_work", **sent)
    assert again.outcome == "duplicate", again
    return row


def _handoff(engine: Engine, runtime: Runtime, claimed: Any, store_id: str) -> None:
    runtime.invoke(claimed)
    fence = runtime.fence(claimed) | {"p_store_id": store_id}
    with engine.open():
        assert engine.call("handoff_lock", **fence)[0].outcome == "held"
        assert engine.call("handoff_check", **fence)[0].outcome == "held"
    assert runtime.complete(claimed).outcome == "completed"


def _suspended(engine: Engine, operator: Operator, work_ids: list[int]) -> None:
    """Reconciled, resolved, tried again, released."""
    views = {work_id: engine.call("get_work", p_work_id=work_id)[0] for work_id in work_ids}
    assert {view.state for view in views.values()} == {"suspended_reconciliation_required"}, views
    first, second, third, *_ = work_ids
    begun = operator.begin(first, p_command_id="reconcile")
    assert begun.outcome == "started", begun
    assert operator.finish(first, "reconcile", begun.revision, "not_applied").outcome == "recorded"
    # Of Work whose class can be asked for, so that each of these is refused with its code.
    assert operator.resolve(second, views[second].revision, "not_applied").code
    assert operator.retry_safe(third, views[third].revision).code
    assert operator.release(third, views[third].revision).code
    assert operator.release_all(preview=True) == []
    for function in ("work_events", "work_permits"):
        assert engine.call(function, p_work_id=first)
    assert engine.call("work_counts")
    assert engine.call(
        "count_work", p_scope_id=None, p_contract_name=None, p_by_scope=True, p_limit=10
    )
    assert engine.call("get_scope", p_scope_id="tenant-1")[0].state == "active"
    named = {"p_states": None, "p_needs_operator": True, "p_contract_name": None, "p_before": None}
    assert engine.call("list_work", p_scope_id="tenant-1", p_limit=10, **named)


def epochs(engine: Engine, target: Target) -> None:
    """Refused and made, with the audit of who did it."""
    store_id = target.value("select store_id::text from onecommit.store_status()")
    with pytest.raises(psycopg.Error) as refused:
        engine.call("initialize_epoch", p_store_id=store_id, p_candidate=engine.epoch + 1, **BY)
    assert refused.value.sqlstate == "OC004"
    [(ended,)] = engine.call(
        "fence_writers", p_store_id=store_id, p_writer_min=1, p_force=False, **BY
    )
    assert ended == []
    following = engine.epoch + 1
    engine.call(
        "rotate_epoch", p_store_id=store_id, p_expected=engine.epoch, p_candidate=following, **BY
    )
    engine.epoch = following
    assert target.epoch == following
