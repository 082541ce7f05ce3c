"""An operator disables a queue for caller-owned completion, and no worker enables it before it is allowed again."""

import pytest

from tests.engine import AUTHORITIES, Engine
from tests.sql.test_enablement import OLD, refused, status
from tests.stores import Store

pytestmark = pytest.mark.pg

WHO = {"p_actor": "ada", "p_reason": "release taken back"}


def disable(engine: Engine, queue: str = "q") -> None:
    engine.call("disable_caller_owned", p_queue=queue, **WHO)


def allow(engine: Engine, queue: str = "q") -> None:
    engine.call("allow_caller_owned", p_queue=queue, **WHO)


def disabled(engine: Engine) -> set[str]:
    """The queues that an operator has disabled."""
    return {row.queue for row in engine.call("finalization_status") if row.disabled_at is not None}


def test_completion_is_refused_and_takes_the_callers_rows_down(store: Store, engine: Engine):
    """The attempt stays open for every other outcome."""
    one, two = engine.take(2)
    disable(engine)
    caller = store.engine().begin()
    caller.sql("insert into app.invoice values (1)")
    assert refused(caller.complete_job, one) == "OC003"
    caller.rollback()
    assert engine.value("select count(*) from app.invoice") == 0
    assert engine.complete([one]) == ["closed"]
    assert engine.finish([two], "retried", lock=True) == ["closed"]
    assert not engine.call("list_queues")[0].caller_owned


@pytest.mark.parametrize("authority", AUTHORITIES)
def test_an_attempt_is_refused_wherever_its_authority_lies(engine: Engine, authority: str):
    """Its queue stands in the lane, and in the lease."""
    [attempt] = engine.take()
    engine.under(authority, attempt)
    disable(engine)
    assert refused(engine.complete_job, attempt) == "OC003"
    allow(engine)
    assert engine.complete_job(attempt).outcome == "completed"


def test_other_queues_go_on(engine: Engine):
    """Although from now on every completion looks its queue up."""
    engine.register(queues=["q", "r"])
    engine.enqueue_one(queue="r")
    engine.enqueue_one()
    disable(engine)
    [attempt] = engine.claim(queue="r").attempts
    assert engine.complete_job(attempt).outcome == "completed"
    assert (status(engine)["r"], disabled(engine)) == ((True, []), {"q"})


def test_nothing_that_workers_do_enables_it_again(store: Store, engine: Engine):
    """Neither a registration nor a retirement nor a round of rescue."""
    [attempt] = engine.take()
    disable(engine)
    joining = store.engine()
    joining.register()
    engine.rescue()
    joining.retire()
    assert (status(engine), disabled(engine)) == ({"q": (False, [])}, {"q"})
    assert refused(engine.complete_job, attempt) == "OC003"


def test_it_can_be_disabled_before_a_worker_serves_it(engine: Engine):
    """The first worker then leaves it as it is."""
    engine.call("adopt_lanes", p_queue="q")
    disable(engine)
    engine.register()
    assert status(engine) == {"q": (False, [])}


def test_an_old_worker_may_claim_while_it_is_disabled(store: Store, engine: Engine):
    """That is what going back to an old version needs; its jobs complete in its own way."""
    engine.register()
    engine.enqueue_one()
    disable(engine)
    old = store.engine()
    old.register(capabilities=OLD)
    [attempt] = old.claim().attempts
    assert old.complete([attempt]) == ["closed"]


def test_allowing_it_enables_it_at_once(engine: Engine):
    """If no live worker lacks the capability; the attempt that was refused may then complete."""
    [attempt] = engine.take()
    disable(engine)
    allow(engine)
    assert (status(engine), disabled(engine)) == ({"q": (True, [])}, set())
    assert engine.complete_job(attempt).outcome == "completed"


def test_allowing_it_waits_for_old_workers(store: Store, engine: Engine):
    """The rule of the workers holds again, and names them before."""
    [attempt] = engine.take()
    disable(engine)
    old = store.engine()
    old.register(capabilities=OLD)
    assert status(engine) == {"q": (False, ["w"])}
    allow(engine)
    assert refused(engine.complete_job, attempt) == "OC003"
    old.retire()
    assert engine.complete_job(attempt).outcome == "completed"


def test_allowing_an_enabled_queue_changes_nothing(engine: Engine):
    """It stays enabled, even beside an old worker's registration."""
    engine.register()
    enabled = engine.value("select enabled_at from onecommit.caller_owned_queue")
    allow(engine)
    assert engine.value("select enabled_at from onecommit.caller_owned_queue") == enabled


def test_who_did_it_and_why_is_kept(engine: Engine):
    """Each time; disabling twice keeps the first time."""
    engine.register()
    disable(engine)
    first = engine.value("select disabled_at from onecommit.caller_owned_queue")
    disable(engine)
    assert engine.value("select disabled_at from onecommit.caller_owned_queue") == first
    allow(engine)
    rows = engine.sql(
        "select action, subject, actor, reason from onecommit.operator_action order by action_id"
    )
    assert [tuple(row) for row in rows] == [
        (action, "q", "ada", "release taken back")
        for action in ("disable_caller_owned", "disable_caller_owned", "allow_caller_owned")
    ]


def test_a_transaction_that_has_completed_before_may_commit(store: Store, engine: Engine):
    """Its attempt was claimed by a worker that reconciles; nobody waits for it."""
    [attempt] = engine.take()
    caller = store.engine().begin()
    assert caller.complete_job(attempt).outcome == "completed"
    disable(engine)
    caller.commit()
    assert engine.state(attempt.job_id) == "completed"


def test_an_old_worker_that_is_being_registered_is_waited_for(store: Store, engine: Engine):
    """Whoever allows the queue sees it, and does not enable."""
    engine.take()
    disable(engine)
    joining, operator = store.engine().begin(), store.engine()
    joining.register(capabilities=OLD)
    with store.blocked(operator, allow, operator, by=joining):
        joining.commit()
    assert status(engine) == {"q": (False, ["w"])}


def test_a_worker_that_registers_meanwhile_does_not_enable(store: Store, engine: Engine):
    """It leaves a queue alone on which an operator is at work, and waits for nobody."""
    engine.call("adopt_lanes", p_queue="q")
    operator, worker = store.engine().begin(), store.engine()
    worker.sql("set lock_timeout = '5s'")
    disable(operator)
    worker.register()
    operator.commit()
    assert (status(engine), disabled(engine)) == ({"q": (False, [])}, {"q"})


def test_disabling_that_is_rolled_back_leaves_the_queue_enabled(store: Store, engine: Engine):
    """Completions only look it up from then on."""
    [attempt] = engine.take()
    operator = store.engine().begin()
    disable(operator)
    operator.rollback()
    assert engine.complete_job(attempt).outcome == "completed"
