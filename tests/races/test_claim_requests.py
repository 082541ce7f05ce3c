"""A claim request is answered once: a lost reply is adopted, and an ended worker claims nothing behind its rescue."""

import psycopg
import pytest

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg


@pytest.fixture
def worker(store: Store) -> Engine:
    """A registered worker and five waiting jobs."""
    worker = store.engine()
    worker.register()
    worker.enqueue(3)
    worker.enqueue(2, options={"priority": 1})
    return worker


def twin(store: Store, worker: Engine) -> Engine:
    """The same incarnation on another connection, as after a reconnect."""
    twin = store.engine()
    twin.worker = worker.worker
    return twin


def test_the_same_request_gets_the_same_batches(worker: Engine):
    """Also after its attempts were closed: what the worker does with them is decided by their closers."""
    first = worker.claim(request=7)
    assert len(first.batches) == 2
    again = worker.claim(request=7)
    assert (again.batches, again.status) == (first.batches, "more")
    worker.complete(first.attempts)
    assert worker.claim(request=7).batches == first.batches


def test_another_request_gets_other_jobs(worker: Engine):
    """A request number is not a filter."""
    assert not set(worker.claim(3, request=1).job_ids) & set(worker.claim(3, request=2).job_ids)


def test_an_empty_answer_is_not_adopted(store: Store):
    """A request that found nothing may find something when it is repeated."""
    worker = store.engine()
    assert worker.claim(request=1).job_ids == []
    job = worker.enqueue_one()
    assert worker.claim(request=1).job_ids == [job]


def test_the_same_request_at_the_same_time_waits_and_gets_the_same(store: Store, worker: Engine):
    """The call whose reply was lost may still be running."""
    other = twin(store, worker)
    worker.begin()
    first = worker.claim(request=7)
    with store.blocked(other, other.claim, request=7, by=worker) as answer:
        worker.commit()
    assert answer.result().batches == first.batches


def test_the_same_request_after_a_rollback_claims_anew(store: Store, worker: Engine):
    """Nothing was handed out by the one that rolled back.

    Its locks go one after the other, so the answer may still find a lane busy; the next claim does not.
    """
    other = twin(store, worker)
    worker.begin()
    first = worker.claim(request=7)
    with store.blocked(other, other.claim, request=7, by=worker) as answer:
        worker.rollback()
    again = answer.result()
    worker.sql("select 1")  # answered only after the rollback, so every lock is gone
    rest = other.claim(request=8)
    assert sorted(again.job_ids + rest.job_ids) == sorted(first.job_ids)
    assert not {batch.batch_id for batch in again.batches} & {
        batch.batch_id for batch in first.batches
    }


def test_another_worker_does_not_adopt(store: Store, worker: Engine):
    """Requests are numbered by each incarnation for itself."""
    worker.claim(request=7)
    assert store.engine().claim(request=7).job_ids == []


def test_rescue_leaves_a_worker_alone_whose_claim_is_in_flight(store: Store, worker: Engine):
    """A claim in flight is proof of life, even without a heartbeat."""
    worker.begin()
    worker.claim()
    rescuer = store.engine()
    assert rescuer.rescue(window_us=0).rescued == 0
    worker.commit()
    assert worker.heartbeat() is not None


def test_retiring_waits_for_a_claim_in_flight(store: Store, worker: Engine):
    """What that claim hands out is rescued, not overlooked."""
    worker.begin()
    claimed = worker.claim()
    operator = twin(store, worker)
    with store.blocked(operator, operator.retire, by=worker):
        worker.commit()
    assert operator.rescue().rescued == len(claimed.attempts)


def test_a_claim_waits_for_the_retirement_and_is_refused(store: Store, worker: Engine):
    """No claim commits behind a rescue that has already looked."""
    operator = twin(store, worker).begin()
    operator.retire()
    with store.blocked(worker, worker.claim, by=operator) as answer:
        operator.commit()
    assert answer.exception().sqlstate == "OC008"


def test_a_claim_waits_for_the_declaration_of_death_and_is_refused(store: Store, worker: Engine):
    """The rescuer holds the worker's lock from its look to its commit."""
    rescuer = store.engine().begin()
    rescuer.rescue(window_us=0)
    with store.blocked(worker, worker.claim, by=rescuer) as answer:
        rescuer.commit()
    assert answer.exception().sqlstate == "OC008"


def test_a_claim_goes_on_when_the_declaration_of_death_is_rolled_back(store: Store, worker: Engine):
    """Then the worker is alive after all."""
    rescuer = store.engine().begin()
    rescuer.rescue(window_us=0)
    with store.blocked(worker, worker.claim, by=rescuer) as answer:
        rescuer.rollback()
    assert len(answer.result().job_ids) == 5


@pytest.mark.parametrize("call", ["claim", "heartbeat"])
@pytest.mark.parametrize("ending", ["retired", "rescued", "unknown"])
def test_an_ended_worker_is_told_to_register_anew(
    store: Store, worker: Engine, call: str, ending: str
):
    """It cannot come back to life under its old number."""
    if ending == "retired":
        worker.retire()
    elif ending == "rescued":
        store.engine().rescue(window_us=0)
    else:
        worker.worker = 10**9
    with pytest.raises(psycopg.Error) as refused:
        getattr(worker, call)()
    assert refused.value.sqlstate == "OC008"
    worker.register()
    assert getattr(worker, call)() is not None


def test_an_ended_worker_cannot_adopt(worker: Engine):
    """The batch it never received is rescued instead."""
    worker.claim(request=7)
    worker.retire()
    with pytest.raises(psycopg.Error) as refused:
        worker.claim(request=7)
    assert refused.value.sqlstate == "OC008"


def test_a_heartbeat_keeps_a_worker_alive(store: Store, worker: Engine):
    """Only silence longer than the window ends it."""
    worker.sql("update onecommit.worker set heartbeat_at = now() - interval '2 hours'")
    worker.heartbeat()
    assert store.engine().rescue().rescued == 0
    worker.sql("update onecommit.worker set heartbeat_at = now() - interval '2 hours'")
    store.engine().rescue()
    with pytest.raises(psycopg.Error):
        worker.heartbeat()


def test_a_heartbeat_before_the_lock_saves_the_worker(store: Store, worker: Engine):
    """Rescue asks again under the worker's lock: here the row itself is in flight."""
    worker.sql("update onecommit.worker set heartbeat_at = now() - interval '2 hours'")
    worker.begin()
    worker.heartbeat()
    rescuer = store.engine()
    with store.blocked(rescuer, rescuer.rescue, by=worker):
        worker.commit()
    assert worker.heartbeat() is not None


def test_one_of_two_leads(store: Store):
    """Of two that ask at once the second waits for the row and is refused."""
    one, two = store.engine(), store.engine()
    one.register()
    two.register()
    one.begin()
    assert one.call("lead", p_worker=one.worker, p_ttl_us=10**9)[0].lead
    with store.blocked(
        two, two.call, "lead", p_worker=two.worker, p_ttl_us=10**9, by=one
    ) as answer:
        one.commit()
    assert not answer.result()[0].lead
    assert one.call("lead", p_worker=one.worker, p_ttl_us=10**9)[0].lead
    one.retire()
    assert two.call("lead", p_worker=two.worker, p_ttl_us=10**9)[0].lead


def test_promotion_by_two_gives_each_job_once(store: Store):
    """The second passes over rows that the first has locked."""
    one, two = store.engine().begin(), store.engine()
    two.sql("select 1")
    jobs = two.enqueue(4, options={"delay_us": 10**9}).job_ids
    two.sql("update onecommit.scheduled set run_at = now()")
    assert one.promote(limit=2).promoted == 2
    assert two.promote().promoted == 2
    one.commit()
    assert sorted(attempt.job_id for attempt in two.drain()) == jobs


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_cancelling_a_job_that_is_being_promoted_waits(store: Store, ending: str):
    """Wherever the job is afterwards, it is cancelled there."""
    promoter, operator = store.engine().begin(), store.engine()
    job = operator.enqueue_one(delay_us=10**9)
    operator.sql("update onecommit.scheduled set run_at = now()")
    assert promoter.promote().promoted == 1
    with store.blocked(operator, operator.cancel, job, by=promoter) as answer:
        getattr(promoter, ending)()
    assert answer.result() == {job: "cancelled"}
    assert (operator.state(job), operator.drain()) == ("cancelled", [])


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_cancelling_a_job_that_is_being_claimed(store: Store, worker: Engine, ending: str):
    """The cancellation wins; if the claim commits, its worker is told and cannot complete."""
    worker.begin()
    claimed = worker.claim()
    operator = store.engine()
    victim = claimed.attempts[0]
    assert operator.cancel(victim.job_id) == {victim.job_id: "cancelled"}
    getattr(worker, ending)()
    told = operator.call("cancellations")[0]
    assert (told.cancel_job_ids, told.cancel_run_leases) == ([victim.job_id], [victim.run_lease])
    if ending == "commit":
        assert worker.complete(claimed.attempts) == ["stale", *["closed"] * 4]
    else:
        assert sorted(a.job_id for a in worker.drain()) == sorted(claimed.job_ids[1:])
    assert operator.state(victim.job_id) == "cancelled"


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_pausing_does_not_wait_for_claims_nor_they_for_it(
    store: Store, worker: Engine, ending: str
):
    """A pause holds for claims that begin after its commit."""
    operator = store.engine().begin()
    operator.pause()
    assert len(worker.claim(2).job_ids) == 2
    getattr(operator, ending)()
    after = worker.claim(2)
    assert (after.status, len(after.job_ids)) == (
        ("paused", 0) if ending == "commit" else ("more", 2)
    )
    if ending == "commit":
        worker.resume()
        assert len(worker.claim(2).job_ids) == 2


@pytest.mark.parametrize("first", ["retry", "purge"])
@pytest.mark.parametrize("second", ["retry", "purge"])
def test_a_dead_letter_leaves_once(store: Store, first: str, second: str):
    """Of two operators the second waits and is told that nothing is there any more."""
    one, two = store.engine(), store.engine()
    [attempt] = one.take()
    one.finish([attempt], "failed")
    act = {"retry": Engine.retry_dead, "purge": Engine.purge_dead}
    one.begin()
    act[first](one, attempt.job_id)
    with store.blocked(two, act[second], two, attempt.job_id, by=one) as answer:
        one.commit()
    assert answer.result() == {attempt.job_id: "not_found"}
    assert len(two.drain()) == (first == "retry")
