"""Rotation, reclaim and evacuation beside open transactions: nothing that may still matter is truncated."""

import psycopg
import pytest

from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

FENCES = """
select pg_sequence_last_value('onecommit.head_fence') as head, pg_sequence_last_value('onecommit.tail_fence') as tail,
       (select reclaimed from onecommit.ring) as reclaimed
"""
NEXT_IN_CHAPTER_2 = """
insert into onecommit.ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args)
select 2, lane, 2, 1, 7, now(), 0, 0, 1, 'k', '{}' from onecommit.lane where queue = 'q'
"""
QUICK = "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0', evacuate_after = %s"


@pytest.fixture
def tender(store: Store) -> Engine:
    """The leader of a ring whose chapters may end at once and are kept for no time; nothing is evacuated."""
    store.truncate_ring()
    tender = store.engine()
    tender.register()
    tender.sql(QUICK, "1 hour")
    tender.call("adopt_lanes", p_queue="q")
    return tender


def fences(engine: Engine) -> tuple[int, int, int]:
    """Head, tail, and the last chapter that was reclaimed."""
    return tuple(engine.sql(FENCES)[0])


def closed_chapter(tender: Engine, count: int = 3) -> list[Attempt]:
    """Fill the head with closed attempts and rotate: the oldest chapter could now be reclaimed."""
    attempts = tender.take(count)
    tender.complete(attempts)
    assert tender.tend()[0] == "rotate"
    return attempts


def keep_the_head(tender: Engine) -> None:
    """From now on the head grows instead of being closed."""
    tender.sql("update onecommit.ring set chapter_lifetime = '1 day'")


def tend_until_none(tender: Engine) -> list[tuple[str, int | None]]:
    """All steps that can be made now."""
    steps = [tender.tend()]
    while steps[-1][0] not in {"none", "blocked"}:
        steps.append(tender.tend())
    return steps


def test_a_closed_chapter_is_reclaimed_and_its_slot_used_again(tender: Engine):
    """Ten chapters go through six slots; what was closed is gone, what is new is there."""
    for chapter in range(1, 11):
        attempts = closed_chapter(tender)
        assert {a.chapter for a in attempts} == {chapter}
        assert tender.tend() == ("reclaim", chapter)
        assert tender.job(attempts[0].job_id) is None
    assert fences(tender) == (11, 11, 10)
    assert tender.tend() == ("none", None)


def test_an_open_attempt_keeps_its_chapter_and_stops_the_ring_when_full(tender: Engine):
    """Five chapters later there is no slot to rotate into; enqueues and claims go on in the head."""
    [open_one] = tender.take()
    assert tender.tend() == ("rotate", 2)
    for chapter in range(2, 6):
        closed_chapter(tender)
        assert fences(tender)[0] == chapter + 1
    tender.complete(tender.take(3))
    assert tender.tend() == ("none", None)
    assert tender.complete([open_one]) == ["closed"]
    assert tender.tend() == ("reclaim", 1)
    assert fences(tender) == (6, 2, 1)


def test_an_open_enqueue_keeps_its_chapter(store: Store, tender: Engine):
    """Its uncommitted row makes the lock fail, its committed row makes the proof fail."""
    producer = store.engine().begin()
    late = producer.enqueue_one()
    closed_chapter(tender)
    assert tender.tend() == ("blocked", None)
    producer.commit()
    assert tender.tend() == ("none", None)
    [attempt] = tender.drain()
    assert (attempt.job_id, attempt.chapter) == (late, 1)
    tender.complete([attempt])
    assert tender.tend() == ("reclaim", 1)


def test_a_row_that_commits_late_in_an_old_chapter_is_claimed_from_there(
    store: Store, tender: Engine
):
    """The head may be several chapters on; the hole is found all the same."""
    producer = store.engine().begin()
    late = producer.enqueue_one()
    for _ in range(3):
        closed_chapter(tender)
    producer.commit()
    [attempt] = tender.drain()
    assert (attempt.job_id, attempt.chapter, fences(tender)[0]) == (late, 1, 4)
    assert tender.complete([attempt]) == ["closed"]
    assert [tender.tend() for _ in range(3)] == [("reclaim", n) for n in (1, 2, 3)]


def test_the_next_number_is_claimed_from_whatever_chapter_it_lies_in(store: Store, tender: Engine):
    """A single new row is looked up in the head's chapter; its producer may have read the head long ago."""
    [before] = tender.take()
    producer = store.engine().begin()
    next_one = producer.enqueue_one()
    assert tender.tend() == ("rotate", 2)
    assert tender.claim().job_ids == []
    producer.commit()
    [attempt] = tender.drain()
    assert (attempt.job_id, attempt.chapter, attempt.claim_slot) == (next_one, 1, 2)
    assert attempt.seq == before.seq + 1


def test_a_chapter_that_begins_while_a_claim_looks_is_looked_at_too(store: Store, tender: Engine):
    """The head that the claim has read is old by then, and so is the child that it looks into first."""
    store.observer.execute("select nextval(number_seq) from onecommit.lane where queue = 'q'")
    reader = store.engine().begin()
    reader.sql("lock table onecommit.ready_1 in access exclusive mode")
    with store.blocked(tender, tender.claim, by=reader) as claim:
        store.observer.execute("insert into onecommit.chapter (chapter) values (2)")
        store.observer.execute("select setval('onecommit.head_fence', 2)")
        store.observer.execute(NEXT_IN_CHAPTER_2)
        reader.commit()
    [batch] = claim.result().batches
    assert (batch.chapters, batch.seqs, batch.claim_slot) == ([2], [1], 2)
    assert tender.claim().status == "empty"


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_an_open_closer_keeps_its_chapter(store: Store, tender: Engine, ending: str):
    """An uncommitted completion proves nothing yet."""
    [attempt] = tender.take()
    tender.tend()
    caller = store.engine().begin()
    caller.complete_job(attempt)
    assert tender.tend() == ("none", None)
    getattr(caller, ending)()
    assert tender.tend() == (("reclaim", 1) if ending == "commit" else ("none", None))


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_claim_in_flight_keeps_the_chapter_of_its_lane(store: Store, tender: Engine, ending: str):
    """The lane's state lies there; it can be saved only while nobody moves it."""
    closed_chapter(tender)
    keep_the_head(tender)
    job = tender.enqueue_one()
    worker = store.engine()
    worker.register()
    worker.begin()
    assert worker.claim().job_ids == [job]
    assert tender.tend() == ("blocked", 1)
    assert fences(tender)[1:] == (1, 0)
    getattr(worker, ending)()
    assert tender.tend() == ("reclaim", 1)
    assert tender.claim().job_ids == ([] if ending == "commit" else [job])


def test_a_long_reader_blocks_the_truncation_for_a_bounded_time_and_nobody_else(
    store: Store, tender: Engine
):
    """A backup or report that reads the chapter delays reclaim; producers, claims and closers do not notice."""
    attempts = closed_chapter(tender)
    keep_the_head(tender)
    reader = store.engine().begin("repeatable read")
    reader.sql("select count(*) from onecommit.ready")
    assert tender.tend() == ("blocked", None)
    other = tender.take()
    assert tender.complete(other) == ["closed"]
    assert reader.value("select count(*) from onecommit.ready_1") == len(attempts)
    reader.commit()
    assert tender.tend() == ("reclaim", 1)


def test_a_blocked_reclaim_does_not_stop_rotation(store: Store, tender: Engine):
    """The head is closed in time however long the reader takes, as long as a slot is free."""
    reader = store.engine().begin()
    reader.sql("select from onecommit.ready limit 1")
    for _ in range(5):
        closed_chapter(tender)
    assert tender.tend() == ("blocked", None)
    reader.commit()
    assert tender.tend() == ("reclaim", 1)


def test_a_truncation_that_failed_after_the_fence_is_made_up_for(store: Store, tender: Engine):
    """The tail moves before the rows go and stays moved: closers are refused, the next call goes on."""
    attempts = closed_chapter(tender)
    reader = store.engine().begin()
    reader.sql("select from onecommit.completion_1")
    assert tender.tend() == ("blocked", None)
    assert fences(tender) == (2, 2, 0)
    assert tender.complete(attempts) == ["recycled"] * 3
    assert tender.finish(attempts, "failed") == ["recycled"] * 3
    assert tender.status(attempts[0]).state == "unknown"
    reader.commit()
    assert tender.tend() == ("reclaim", 1)
    assert fences(tender) == (2, 2, 1)


@pytest.mark.parametrize("step", ["rotate", "reclaim"])
def test_a_step_that_was_rolled_back_is_made_again(tender: Engine, step: str):
    """A fence does not come back with the transaction; the ring goes on from where the fences stand."""
    attempts = tender.take(3)
    tender.complete(attempts)
    if step == "reclaim":
        tender.tend()
    with tender.open():
        assert tender.tend()[0] == step
        tender.rollback()
    for _ in range(20):
        tender.complete(tender.take(3))
        tend_until_none(tender)
    head, tail, reclaimed = fences(tender)
    assert head > 8
    assert (tail, reclaimed) == (head, head - 1)
    assert tender.value("select count(*) from onecommit.chapter c where c.chapter = %s", head) == 1


def test_a_rotation_that_was_rolled_back_does_not_shorten_the_retention(tender: Engine):
    """The chapter whose row was lost with the transaction is kept as long as any other."""
    tender.sql("update onecommit.ring set retention = '1 hour', retention_floor = '1 hour'")
    tender.complete(tender.take())
    with tender.open():
        assert tender.tend() == ("rotate", 2)
        tender.rollback()
    tender.complete(tender.take())
    for _ in range(4):
        tender.tend()
    assert fences(tender)[1:] == (1, 0)


def test_holes_survive_the_truncation_of_the_claim_that_carried_them(store: Store, tender: Engine):
    """The lane's saved state still says which numbers are open and under which generation."""
    rolled_back = store.engine().begin()
    rolled_back.enqueue(2)
    tender.complete(tender.take())
    rolled_back.rollback()
    assert tender.tend() == ("rotate", 2)
    keep_the_head(tender)
    assert tender.tend() == ("reclaim", 1)
    saved = tender.sql("select * from onecommit.lane where queue = 'q'")[0]
    assert (saved.frontier, len(saved.old_holes)) == (3, 1)
    assert tender.value("select count(*) from onecommit.claim") == 0
    [job] = tender.enqueue().job_ids
    assert [a.job_id for a in tender.drain()] == [job]
    state = tender.lane_state(saved.lane)
    assert (state.frontier, len(state.old_holes), len(state.new_holes)) == (4, 0, 0)
    assert state.settled >= saved.label


def test_saved_lanes_go_on_from_their_frontier(tender: Engine):
    """Two lanes, both forgotten by the claim table, hand out the next job and no number twice."""
    urgent, normal = tender.enqueue_one(priority=1), tender.enqueue_one()
    assert tender.claim().job_ids == [urgent, normal]
    tender.cancel(urgent, normal)
    tender.tend()
    assert tender.tend() == ("reclaim", 1)
    jobs = [tender.enqueue_one(priority=1), tender.enqueue_one()]
    claimed = tender.claim()
    assert claimed.job_ids == jobs
    assert [a.seq for a in claimed.attempts] == [2, 2]


@pytest.mark.parametrize("count", [1, 2])
def test_an_enqueue_that_slept_through_the_reclaim_of_its_chapter_is_asked_to_retry(
    store: Store, tender: Engine, count: int
):
    """It read the head, then waited; its row would lie in a slot that was truncated and is used again."""
    closed_chapter(tender)
    producer = store.engine()
    with tender.open():
        tender.sql("lock table onecommit.ready_1 in share mode")
        tender.sql("select setval('onecommit.head_fence', 1)")
        with store.blocked(producer, producer.enqueue, count, by=tender) as answer:
            tender.sql("select setval('onecommit.head_fence', 2)")
            assert tender.tend() == ("reclaim", 1)
            tender.commit()
    assert isinstance(answer.exception(), psycopg.errors.SerializationFailure)
    assert tender.value("select count(*) from onecommit.ready") == 0


def test_a_batch_that_slept_through_the_reclaim_of_its_chapter_writes_nothing(
    store: Store, tender: Engine
):
    """A completion in a slot that is used again would falsify somebody else's proof."""
    attempts = closed_chapter(tender)
    worker = store.engine()
    with tender.open():
        tender.sql("lock table onecommit.completion_1 in share mode")
        with store.blocked(worker, worker.complete, attempts, by=tender) as answer:
            assert tender.tend() == ("reclaim", 1)
            tender.commit()
    assert isinstance(answer.exception(), psycopg.errors.SerializationFailure)
    assert tender.value("select count(*) from onecommit.completion") == 0
    assert worker.complete(attempts) == ["recycled"] * 3


def test_a_caller_in_flight_keeps_its_chapter(store: Store, tender: Engine):
    """complete_job has read the claim, so the truncation fails until its transaction ends."""
    [attempt, *_] = closed_chapter(tender)
    caller = store.engine()
    with tender.open():
        tender.sql("lock table onecommit.completion_1 in share mode")
        with store.blocked(caller, caller.complete_job, attempt, by=tender) as answer:
            assert tender.tend() == ("blocked", None)
            tender.commit()
    # The fence moved before the truncation failed, so it is asked to try again, and is then told.
    assert isinstance(answer.exception(), psycopg.errors.SerializationFailure)
    with pytest.raises(psycopg.Error) as refused:
        caller.complete_job(attempt)
    assert refused.value.sqlstate == "OC001"
    assert tender.tend() == ("reclaim", 1)


def test_a_token_whose_chapter_was_reclaimed_is_stale(tender: Engine):
    """Its claim may outlive its row; a retry would not help, so it is not asked for."""
    [job] = tender.enqueue().job_ids
    assert tender.tend() == ("rotate", 2)
    [attempt] = tender.claim().attempts
    assert (attempt.chapter, attempt.claim_slot) == (1, 2)
    tender.complete([attempt])
    assert tender.tend() == ("reclaim", 1)
    with pytest.raises(psycopg.Error) as refused:
        tender.complete_job(attempt)
    assert refused.value.sqlstate == "OC001"
    assert tender.status(attempt).state == "unknown"
    assert tender.job(job) is None


def test_two_tenders_do_not_meet(store: Store, tender: Engine):
    """The second answers blocked at once; the steps assume that nobody else moves the fences."""
    closed_chapter(tender)
    tender.begin()
    assert tender.tend() == ("reclaim", 1)
    other = store.engine()
    assert other.tend() == ("blocked", None)
    tender.commit()
    assert other.tend() == ("none", None)


def test_an_adopted_batch_whose_rows_were_reclaimed_is_refused(tender: Engine):
    """A shortened batch would shift every index in it, so the worker has to start over."""
    jobs = tender.enqueue(1).job_ids
    assert tender.tend() == ("rotate", 2)
    keep_the_head(tender)
    jobs += tender.enqueue(1).job_ids
    claimed = tender.claim(request=50)
    assert (claimed.job_ids, [a.chapter for a in claimed.attempts]) == (jobs, [1, 2])
    tender.complete(claimed.attempts[:1])
    assert tender.claim(request=50).batches == claimed.batches
    assert tender.tend() == ("reclaim", 1)
    with pytest.raises(psycopg.Error) as refused:
        tender.claim(request=50)
    assert refused.value.sqlstate == "OC008"
    tender.retire()
    assert tender.rescue().rescued == 1
