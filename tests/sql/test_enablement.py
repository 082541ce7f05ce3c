"""A queue accepts caller-owned completion once no live worker of it lacks the capability, and then for good."""

import psycopg
import pytest

from tests.engine import AUTHORITIES, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

OLD: tuple[str, ...] = ()


def status(engine: Engine) -> dict[str, tuple[bool, list[str]]]:
    """Of each queue: whether it is enabled, and whom that waits for."""
    rows = engine.call("finalization_status")
    return {row.queue: (row.enabled_at is not None, row.waiting_for) for row in rows}


def refused(call, *arguments) -> str:
    """The SQLSTATE with which the call was refused; it says what to do."""
    with pytest.raises(psycopg.Error) as caught:
        call(*arguments)
    assert caught.value.diag.message_hint
    return caught.value.sqlstate


@pytest.fixture
def old(store: Store, engine: Engine) -> Engine:
    """A live worker of an earlier version that serves the queue, which has a lane already."""
    engine.call("adopt_lanes", p_queue="q")
    old = store.engine()
    old.register(capabilities=OLD)
    return old


def test_a_fleet_of_this_version_needs_no_switch(engine: Engine):
    """The first worker enables the queues that it says it serves."""
    engine.register(queues=["q", "r"])
    assert status(engine) == {"q": (True, []), "r": (True, [])}


def test_a_fleet_of_this_version_looks_nothing_up(store: Store, engine: Engine):
    """Neither claims nor completions ask for queues or workers before the first old worker comes."""
    engine.register()
    with store.engine().open() as owner:
        owner.sql("lock onecommit.caller_owned_queue in access exclusive mode")
        [attempt] = engine.take()
        assert engine.complete_job(attempt).outcome == "completed"


def test_a_mixed_fleet_is_refused_and_named(store: Store, engine: Engine, old: Engine):
    """The old worker could claim the next attempt of the job and would not reconcile it."""
    [attempt] = engine.take()
    assert status(engine) == {"q": (False, ["w"])}
    assert not engine.call("list_queues")[0].caller_owned
    caller = store.engine().begin()
    caller.sql("insert into app.invoice values (1)")
    assert refused(caller.complete_job, attempt) == "OC003"
    caller.rollback()
    assert engine.status(attempt).state == "open"


def test_normal_completion_works_while_the_path_is_disabled(engine: Engine, old: Engine):
    """Of every worker, by every other outcome."""
    one, two, three = engine.take(3)
    assert engine.complete([one]) == ["closed"]
    assert engine.finish([two], "retried", lock=True) == ["closed"]
    assert engine.cancel(three.job_id) == {three.job_id: "cancelled"}
    engine.enqueue_one()
    [claimed] = old.claim().attempts
    assert old.complete([claimed]) == ["closed"]


@pytest.mark.parametrize("leaves", ["retires", "is declared dead"])
def test_it_is_enabled_as_soon_as_the_last_old_worker_is_gone(
    store: Store, engine: Engine, old: Engine, leaves: str
):
    """Whether it says good-bye or not; an attempt that runs already may then complete."""
    [attempt] = engine.take()
    if leaves == "retires":
        old.retire()
    else:
        store.observer.execute(
            "update onecommit.worker set heartbeat_at = now() - interval '2 hours' where worker = %s",
            (old.worker,),
        )
        engine.rescue()
    assert status(engine) == {"q": (True, [])}
    assert engine.complete_job(attempt).outcome == "completed"


def test_a_worker_without_the_capability_that_joins_later_is_refused(engine: Engine, store: Store):
    """Its claims, and only those of the enabled queue; the jobs stay for the others."""
    engine.enqueue_one()
    engine.enqueue_one(queue="r")
    engine.register()
    late = store.engine()
    late.register(queues=["q", "r"], capabilities=OLD)
    assert refused(late.claim) == "OC003"
    assert len(late.claim(queue="r").attempts) == 1
    assert len(engine.claim().attempts) == 1


def test_enablement_is_durable(engine: Engine, store: Store):
    """It outlives every worker that had a part in it."""
    engine.register()
    engine.retire()
    store.engine().register(capabilities=OLD)
    assert status(engine) == {"q": (True, [])}
    engine.enqueue_one()
    assert engine.call("list_queues")[0].caller_owned


def test_a_worker_that_does_not_say_what_it_serves_may_serve_any(engine: Engine, store: Store):
    """So it stands in the way of every queue."""
    engine.call("register_worker", p_name="anon", p_info="{}")
    engine.register(queues=["q", "r"])
    assert status(engine) == {"q": (False, ["anon"]), "r": (False, ["anon"])}


@pytest.mark.parametrize(
    "info",
    [
        '{"queues": "q", "capabilities": "caller_owned_v1"}',
        '{"queues": {"q": 1}, "capabilities": {"caller_owned_v1": true}}',
        '{"queues": [1, null, ["q"]], "capabilities": [null, "other"]}',
        '{"queues": null, "capabilities": 1}',
    ],
)
def test_what_a_worker_says_in_another_form_enables_nothing(engine: Engine, info: str):
    """And is no error: the store keeps it for operators."""
    assert engine.call("register_worker", p_name="odd", p_info=info)
    assert "q" not in status(engine)
    assert engine.call("list_workers")[0].name == "odd"


def test_old_workers_of_other_queues_and_epochs_do_not_count(engine: Engine, store: Store):
    """They cannot claim from this one."""
    store.engine().register(queues=["r"], capabilities=OLD)
    fenced = store.engine()
    fenced.register(capabilities=OLD)
    store.observer.execute(
        "update onecommit.worker set epoch = epoch - 1 where worker = %s", (fenced.worker,)
    )
    engine.register()
    assert status(engine) == {"q": (True, [])}


def test_an_old_worker_that_is_being_registered_prevents_the_enablement(
    store: Store, engine: Engine
):
    """It is not visible yet, and could claim the moment it is."""
    engine.call("adopt_lanes", p_queue="q")
    joining = store.engine().begin()
    joining.register(capabilities=OLD)
    engine.register()
    assert status(engine) == {"q": (False, [])}
    joining.commit()
    engine.rescue()
    assert status(engine) == {"q": (False, ["w"])}


def test_an_old_worker_that_registers_during_the_enablement_sees_it(store: Store, engine: Engine):
    """It waits for whoever enables, so no claim of it can be in time."""
    engine.call("adopt_lanes", p_queue="q")
    enabling, joining = store.engine().begin(), store.engine()
    enabling.register()
    with store.blocked(joining, joining.register, capabilities=OLD, by=enabling):
        enabling.commit()
    assert refused(joining.claim) == "OC003"


@pytest.mark.parametrize("authority", AUTHORITIES)
def test_an_attempt_is_judged_by_its_queue(engine: Engine, old: Engine, authority: str):
    """Its lane says which, or its lease."""
    [attempt] = engine.take()
    engine.under(authority, attempt)
    assert refused(engine.complete_job, attempt) == "OC003"
    old.retire()
    assert engine.complete_job(attempt).outcome == "completed"
