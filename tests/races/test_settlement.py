"""Claims while numbers are drawn and not committed: a late row is found, a hole is dropped only when none can come."""

import pytest

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

LANE = "select lane from onecommit.lane where queue = 'q' and priority = 2"
GENERATION = "select pg_sequence_last_value(generation_seq) from onecommit.lane where lane = %s"
# The lock that an enqueue takes between reading the generation and drawing numbers.
HOLD_GENERATION = "select pg_advisory_lock(onecommit.lock_class('onecommit.ready'), onecommit.generation_key(%s::smallint, %s))"
LEAVE_GENERATION = "select pg_advisory_unlock(onecommit.lock_class('onecommit.ready'), onecommit.generation_key(%s::smallint, %s))"


@pytest.fixture
def claimer(store: Store) -> Engine:
    """A worker whose queue has its lane already."""
    claimer = store.engine()
    claimer.call("adopt_lanes", p_queue="q")
    assert claimer.claim().status == "empty"
    return claimer


def drawn(store: Store) -> tuple[Engine, int]:
    """A producer that has drawn the next number and not committed."""
    producer = store.engine().begin()
    return producer, producer.enqueue_one()


def holes(claimer: Engine) -> int:
    """How many numbers below the frontier are still waited for."""
    state = claimer.lane_state(claimer.value(LANE))
    return sum(r.upper - r.lower for ranges in (state.old_holes, state.new_holes) for r in ranges)


def test_a_row_that_commits_behind_the_frontier_is_found(store: Store, claimer: Engine):
    """Later rows are handed out meanwhile, and the late one is handed out once."""
    slow, late = drawn(store)
    quick = store.engine().enqueue_one()
    first = claimer.claim()
    assert (first.job_ids, first.status) == ([quick], "pending")
    for _ in range(3):
        assert (claimer.claim().job_ids, holes(claimer)) == ([], 1)
    slow.commit()
    assert claimer.claim().job_ids == [late]
    assert claimer.drain() == []


def test_a_row_that_commits_beyond_the_frontier_is_pending(store: Store, claimer: Engine):
    """A drawn number above everything seen keeps the worker polling."""
    slow, late = drawn(store)
    assert claimer.claim().status == "pending"
    slow.commit()
    assert claimer.claim().job_ids == [late]


def test_a_rolled_back_number_is_dropped_and_the_queue_is_empty(store: Store, claimer: Engine):
    """Once nobody can fill the hole the lane forgets it."""
    slow, _ = drawn(store)
    quick = store.engine().enqueue_one()
    assert claimer.claim().job_ids == [quick]
    slow.rollback()
    assert claimer.drain() == []
    assert holes(claimer) == 0


def test_holes_of_several_generations_wait_for_their_own_producers(store: Store, claimer: Engine):
    """Each open producer keeps its hole, whichever claims and bumps happen in between."""
    open_ones = []
    for _ in range(4):
        open_ones.append(drawn(store))
        store.engine().enqueue_one()
        assert len(claimer.claim().job_ids) == 1
        claimer.claim()
    assert holes(claimer) == 4
    found = []
    for producer, late in (open_ones[2], open_ones[0], open_ones[3], open_ones[1]):
        producer.commit()
        found += claimer.claim().job_ids
        assert found[-1] == late
    assert claimer.drain() == []
    assert holes(claimer) == 0


def test_an_old_producer_keeps_only_what_it_can_still_fill(store: Store, claimer: Engine):
    """While one transaction stays open, holes of ended ones may wait but are never claimed twice."""
    slow, late = drawn(store)
    expected, taken = set(), []
    for n in range(12):
        with store.engine().open() as producer:
            job = producer.enqueue_one()
            if n % 3 == 0:
                producer.rollback()
            else:
                expected.add(job)
        taken += claimer.claim(limit=2).job_ids
    slow.commit()
    taken += [attempt.job_id for attempt in claimer.drain(limit=1)]
    assert sorted(taken) == sorted(expected | {late})


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_more_late_rows_than_the_limit_are_not_forgotten(store: Store, claimer: Engine, limit: int):
    """A hole whose row was seen but not taken stays, though its generation has settled."""
    slow = store.engine().begin()
    late = slow.enqueue(5).job_ids
    quick = store.engine().enqueue_one()
    assert claimer.claim().job_ids == [quick]
    claimer.claim()
    slow.commit()
    assert [attempt.job_id for attempt in claimer.drain(limit=limit)] == late


def test_a_claim_that_dies_after_the_bump_loses_nothing(store: Store, claimer: Engine):
    """The generation it moved stays moved; the rows it took are taken by the next claim."""
    slow, late = drawn(store)
    quick = store.engine().enqueue_one()
    generation = claimer.value(GENERATION, claimer.value(LANE))
    for _ in range(3):
        with claimer.open():
            assert claimer.claim().job_ids == [quick]
            claimer.rollback()
    assert claimer.value(GENERATION, claimer.value(LANE)) == generation + 3
    assert claimer.claim().job_ids == [quick]
    assert claimer.claim().job_ids == []
    slow.commit()
    assert [attempt.job_id for attempt in claimer.drain()] == [late]


def test_an_enqueue_reads_the_generation_again_under_its_lock(store: Store, claimer: Engine):
    """A generation that moved and settled between an enqueue's read and its lock does not cover its number."""
    lane = claimer.value(LANE)
    generation = claimer.value(GENERATION, lane)
    claimer.sql(HOLD_GENERATION, lane, generation)
    producer = store.engine().begin()
    with store.blocked(producer, producer.enqueue_one, by=claimer) as late:
        # The claimer makes a hole out of a number that nobody will fill, and settles the generation it holds itself.
        claimer.sql("select nextval(number_seq) from onecommit.lane where lane = %s", lane)
        claimer.sql(
            "insert into onecommit.ready select slot, lane, chapter, 2, 0, now(), 0, 0, 1, 'k', '{}' "
            "from (values (1, %s::smallint, 1)) v (slot, lane, chapter)",
            lane,
        )
        claimer.sql("select nextval(number_seq) from onecommit.lane where lane = %s", lane)
        assert claimer.claim().job_ids == [0]
        assert claimer.claim().job_ids == []
        assert claimer.lane_state(lane).settled == generation
        claimer.sql(LEAVE_GENERATION, lane, generation)
    quick = store.engine().enqueue_one()
    assert claimer.claim().job_ids == [quick]
    for _ in range(3):
        assert (claimer.claim().job_ids, holes(claimer)) == ([], 1)
    producer.commit()
    assert [attempt.job_id for attempt in claimer.drain()] == [late.result()]


def test_a_number_drawn_in_a_savepoint_that_is_rolled_back_settles_early(
    store: Store, claimer: Engine
):
    """It needs no wait for the outer transaction, whose own rows are still found."""
    producer = store.engine().begin()
    producer.sql("savepoint a")
    producer.enqueue_one()
    producer.sql("rollback to a")
    quick = store.engine().enqueue_one()
    assert claimer.claim().job_ids == [quick]
    assert claimer.drain() == []
    kept = producer.enqueue_one()
    assert claimer.claim().status == "pending"
    producer.commit()
    assert claimer.claim().job_ids == [kept]


@pytest.mark.parametrize("ending", ["release a", "rollback to a"])
def test_a_savepoint_between_two_enqueues_of_one_transaction(
    store: Store, claimer: Engine, ending: str
):
    """What was enqueued before, inside and after it exists exactly as far as it was not rolled back."""
    producer = store.engine().begin()
    before = producer.enqueue_one()
    producer.sql("savepoint a")
    inside = producer.enqueue_one()
    producer.sql(ending)
    after = producer.enqueue_one()
    quick = store.engine().enqueue_one()
    assert claimer.claim().job_ids == [quick]
    assert claimer.claim().status == "pending"
    producer.commit()
    late = [attempt.job_id for attempt in claimer.drain()]
    assert late == ([before, inside, after] if ending == "release a" else [before, after])


def test_at_the_cap_on_holes_the_frontier_stops_and_none_is_dropped(store: Store, claimer: Engine):
    """Two thousand gaps below an open producer stop the look ahead until it ends."""
    slow, late = drawn(store)
    with store.engine().open() as producer:
        rows = producer.sql(
            "select nextval(l.number_seq), (onecommit.enqueue_jobs('q', '{k}', '{1}', null, %s)).job_ids[1] as job "
            "from onecommit.lane l, generate_series(1, 2100) where l.queue = 'q'",
            store.epoch,
        )
    taken = []
    for _ in range(30):
        taken += claimer.claim(limit=100).job_ids
    assert 2000 <= len(taken) < 2100
    assert claimer.claim().status == "pending"
    slow.commit()
    taken += [attempt.job_id for attempt in claimer.drain(limit=1000)]
    assert sorted(taken) == sorted([late, *(row.job for row in rows)])
    assert holes(claimer) == 0


def test_another_claimer_of_the_lane_is_told_busy_not_empty(store: Store, claimer: Engine):
    """It must try again in a moment: the one that holds the lane may roll back."""
    job = store.engine().enqueue_one()
    claimer.begin()
    assert claimer.claim().job_ids == [job]
    other = store.engine()
    busy = other.claim()
    assert (busy.status, busy.job_ids) == ("busy", [])
    claimer.rollback()
    assert other.claim().job_ids == [job]


def test_an_open_claim_does_not_stop_producers(store: Store, claimer: Engine):
    """Enqueues commit while a claim transaction stays open, also in the generation that it bumped and settled."""
    slow, _ = drawn(store)
    store.engine().enqueue_one()
    claimer.claim()
    slow.rollback()
    claimer.begin()
    claimer.claim()
    job = store.engine().enqueue_one()
    claimer.commit()
    assert claimer.claim().job_ids == [job]
