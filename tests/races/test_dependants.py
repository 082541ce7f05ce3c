"""A dependant enqueued while its parent ends is never forgotten, whichever transaction commits first."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests import observe
from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

WATCHED = "select count(*) from onecommit.dependant where look_at is not null"


def complete_job(engine: Engine, attempt: Attempt) -> None:
    engine.complete_job(attempt)


def complete_jobs(engine: Engine, attempt: Attempt) -> None:
    assert engine.complete([attempt]) == ["closed"]


def fail(engine: Engine, attempt: Attempt) -> None:
    assert engine.finish([attempt], "failed") == ["closed"]


def cancel(engine: Engine, attempt: Attempt) -> None:
    engine.cancel(attempt.job_id)


ENDS = {
    "complete_job": (complete_job, "ready"),
    "complete_jobs": (complete_jobs, "ready"),
    "failed": (fail, "cancelled"),
    "cancelled": (cancel, "cancelled"),
}


def look(leader: Engine) -> None:
    """What promote_jobs does, as if the pause before the look had passed."""
    leader.sql("update onecommit.dependant set look_at = now() where look_at is not null")
    leader.promote()


@pytest.fixture
def attempt(store: Store) -> Attempt:
    """In a store that has had dependants, so that closers look for them."""
    engine = store.engine()
    engine.cancel(engine.enqueue_one(after=engine.enqueue_one(queue="other"), queue="other"))
    [attempt] = engine.take()
    return attempt


@pytest.mark.parametrize("first", ["producer", "closer"])
@pytest.mark.parametrize("end", ENDS)
def test_an_end_and_a_dependant_that_do_not_see_each_other_are_brought_together(
    store: Store, attempt: Attempt, end: str, first: str
):
    """Both open at once, committed in either order: the leader's look finds the dependant."""
    act, expected = ENDS[end]
    producer, closer, leader = store.engine(), store.engine(), store.engine()
    producer.begin()
    job = producer.enqueue_one(after=attempt.job_id)
    closer.begin()
    act(closer, attempt)
    for engine in (producer, closer) if first == "producer" else (closer, producer):
        engine.commit()
    assert leader.state(job) == "blocked"
    look(leader)
    assert leader.state(job) == expected


@pytest.mark.parametrize("end", ENDS)
def test_an_open_end_is_waited_for_by_the_looks_and_not_by_the_producer(
    store: Store, attempt: Attempt, end: str
):
    """As long as a transaction is open that could have missed the dependant, it is looked at again."""
    act, expected = ENDS[end]
    producer, closer, leader = store.engine(), store.engine(), store.engine()
    closer.begin()
    act(closer, attempt)
    job = producer.enqueue_one(after=attempt.job_id)
    for _ in range(3):
        look(leader)
        assert leader.state(job) == "blocked"
        assert leader.value(WATCHED) == 1
    closer.commit()
    look(leader)
    assert leader.state(job) == expected


def test_an_end_that_commits_between_the_question_and_the_look_is_not_passed_over(
    store: Store, attempt: Attempt
):
    """Whether all old transactions have ended is asked first; what is open then is asked for later again."""
    producer, closer, leader, tender = (store.engine() for _ in range(4))
    closer.begin()
    closer.complete_job(attempt)
    job = producer.enqueue_one(after=attempt.job_id)
    look(leader)
    # The leader stops after its question: another job's end is on record and its dependant is locked.
    other = producer.enqueue_one()
    blocked = producer.enqueue_one(after=other)
    producer.sql("insert into onecommit.parent_end values (%s, 'completed')", other)
    tender.begin()
    tender.sql("select from onecommit.dependant where job_id = %s for update", blocked)
    with store.blocked(leader, look, leader, by=tender):
        closer.commit()
        tender.rollback()
    look(leader)
    assert leader.state(job) == "ready"


def test_a_dependant_is_looked_at_no_more_once_nobody_can_have_missed_it(
    store: Store, attempt: Attempt
):
    """Then whoever ends the parent sees the dependant."""
    producer, leader = store.engine(), store.engine()
    job = producer.enqueue_one(after=attempt.job_id)
    look(leader)
    assert leader.value(WATCHED) == 1
    look(leader)
    assert leader.value(WATCHED) == 0
    assert leader.state(job) == "blocked"
    complete_jobs(leader, attempt)
    assert leader.state(job) == "ready"


def test_the_first_dependant_of_a_store_is_found_by_a_closer_that_did_not_look(store: Store):
    """It read the mark before the first dependant was enqueued; its end is waited for like any other."""
    producer, closer, leader = store.engine(), store.engine(), store.engine()
    producer.sql("select setval('onecommit.dependant_mark', 0)")
    [attempt] = closer.take()
    closer.begin()
    closer.complete_job(attempt)
    job = producer.enqueue_one(after=attempt.job_id)
    look(leader)
    look(leader)
    assert leader.value(WATCHED) == 1
    closer.commit()
    look(leader)
    assert leader.state(job) == "ready"


def test_a_snapshot_older_than_a_dependant_that_is_looked_at_no_more_still_ends_it(
    store: Store, attempt: Attempt
):
    """A transaction without a number is not waited for; its end is on record."""
    producer, caller, leader = store.engine(), store.engine(), store.engine()
    caller.begin("repeatable read")
    caller.sql("select count(*) from app.invoice")
    job = producer.enqueue_one(after=attempt.job_id)
    look(leader)
    look(leader)
    assert leader.value(WATCHED) == 0
    caller.complete_job(attempt)
    caller.commit()
    leader.promote()
    assert leader.state(job) == "ready"


def test_a_producer_with_an_old_snapshot_is_helped_by_the_look(store: Store, attempt: Attempt):
    """It takes the parent for open, though that has ended before."""
    producer, closer, leader = store.engine(), store.engine(), store.engine()
    producer.begin("repeatable read")
    producer.sql("select count(*) from app.invoice")
    complete_jobs(closer, attempt)
    job = producer.enqueue_one(after=attempt.job_id)
    producer.commit()
    assert leader.state(job) == "blocked"
    look(leader)
    assert leader.state(job) == "ready"


def test_a_parent_whose_history_is_gone_counts_as_not_completed(store: Store, attempt: Attempt):
    """Nobody can say any more how it ended, so the rule decides."""
    producer, leader = store.engine(), store.engine()
    jobs = [
        producer.enqueue_one(after=attempt.job_id, on_parent_failure=rule)
        for rule in ("cancel", "enqueue")
    ]
    look(leader)
    leader.sql("update onecommit.dependant set parent_id = 10^15")
    look(leader)
    assert [leader.state(job) for job in jobs] == ["cancelled", "ready"]


@pytest.mark.parametrize("act", [Engine.retry_dead, Engine.purge_dead])
def test_a_missed_end_is_decided_before_an_operator_hides_it(
    store: Store, attempt: Attempt, act: Callable[[Engine, int], object]
):
    """Retrying or purging the dead parent first releases by its end."""
    producer, closer, operator = store.engine(), store.engine(), store.engine()
    producer.begin()
    job = producer.enqueue_one(after=attempt.job_id, on_parent_failure="enqueue")
    fail(closer, attempt)
    producer.commit()
    assert operator.state(job) == "blocked"
    act(operator, attempt.job_id)
    assert operator.state(job) == "ready"
    assert '"outcome": "failed"' in operator.job(job).options


def test_the_leader_passes_over_what_a_closer_holds(store: Store, attempt: Attempt):
    """A caller's open completion does not stop promotion."""
    producer, caller, leader = store.engine(), store.engine(), store.engine()
    job = producer.enqueue_one(after=attempt.job_id)
    caller.begin()
    caller.complete_job(attempt)
    leader.sql("set lock_timeout = '5s'")
    leader.promote()
    assert leader.state(job) == "blocked"
    caller.commit()
    assert leader.state(job) == "ready"


def test_an_operator_and_a_closer_that_want_the_same_dependant_take_turns(
    store: Store, attempt: Attempt
):
    """The operator's cancel waits for the caller's commit, and then finds the job in its lane."""
    producer, caller, operator = store.engine(), store.engine(), store.engine()
    job = producer.enqueue_one(after=attempt.job_id)
    caller.begin()
    caller.complete_job(attempt)
    with store.blocked(operator, operator.cancel, job, by=caller) as answer:
        caller.commit()
    assert answer.result() == {job: "cancelled"}
    assert operator.claim().attempts == ()


def dependant(engine: Engine, parent: int, **options) -> int:
    """A job that is cancelled when its parent is; `key` makes its end stop at a unique key that somebody holds."""
    key = options.pop("key", None)
    return engine.enqueue_one(after=parent, **({"unique": {"key": key}} if key else {}), **options)


@contextmanager
def stopped_at(store: Store, job: int, engine: Engine, call: Callable, *arguments) -> Iterator:
    """The call has come to the end of the job and no further; the block lets it go on."""
    holder = store.engine().begin()
    holder.sql("select from onecommit.unique_key where job_id = %s for update", job)
    with store.blocked(engine, call, *arguments, by=holder) as answer:
        yield answer
        holder.rollback()


@pytest.mark.parametrize("first", ["cascade", "cancel"])
def test_a_cascade_of_several_levels_and_a_cancel_of_several_jobs_take_turns(
    store: Store, attempt: Attempt, first: str
):
    """Both lock all that they will take in id order, whatever its level; neither is a deadlock's victim."""
    closer, operator = store.engine(), store.engine()
    child = dependant(closer, attempt.job_id, key="aa")
    grandchild = dependant(closer, child, key="bb")
    other = dependant(closer, attempt.job_id)
    if first == "cascade":
        with stopped_at(store, child, closer, fail, closer, attempt) as ended:
            cancelled = store.background(operator.cancel, grandchild, other)
            observe.wait_until_blocked(store.observer, operator.pid, closer.pid)
        expected = "already_finished"
    else:
        with stopped_at(
            store, grandchild, operator, operator.cancel, grandchild, other
        ) as cancelled:
            ended = store.background(fail, closer, attempt)
            observe.wait_until_blocked(store.observer, closer.pid, operator.pid)
        expected = "cancelled"
    assert ended.result(timeout=observe.PATIENCE_SECONDS) is None
    assert cancelled.result(timeout=observe.PATIENCE_SECONDS) == dict.fromkeys(
        (grandchild, other), expected
    )
    assert {closer.state(job) for job in (child, grandchild, other)} == {"cancelled"}


def test_a_cancel_locks_what_its_running_jobs_will_release_before_the_dependants_it_names(
    store: Store, attempt: Attempt
):
    """A second cancel waits for the first instead of meeting it head-on."""
    one, two = store.engine(), store.engine()
    first = dependant(one, attempt.job_id)
    second = dependant(one, one.enqueue_one(), key="aa")
    with stopped_at(store, second, one, one.cancel, attempt.job_id, second) as answer:
        other = store.background(two.cancel, first, second)
        observe.wait_until_blocked(store.observer, two.pid, one.pid)
    assert set(answer.result().values()) == {"cancelled"}
    assert set(other.result(timeout=observe.PATIENCE_SECONDS).values()) == {"already_finished"}


def test_the_leader_waits_for_no_dependant_while_it_holds_those_it_looks_at(
    store: Store, attempt: Attempt
):
    """What an operator is about to take stays on record; the operator's rollback loses nothing."""
    producer, closer, operator, leader = (store.engine() for _ in range(4))
    producer.begin()
    one, two = (dependant(producer, attempt.job_id, on_parent_failure="enqueue") for _ in range(2))
    fail(closer, attempt)
    producer.commit()
    producer.sql("update onecommit.dependant set look_at = null where job_id = %s", one)
    operator.begin()
    operator.cancel(one)
    leader.sql("set lock_timeout = '5s'")
    look(leader)
    assert leader.state(two) == "ready"
    operator.rollback()
    leader.promote()
    assert leader.state(one) == "ready"


def test_a_dependant_that_was_committed_after_the_locks_is_left_to_the_look(
    store: Store, attempt: Attempt
):
    """Taking it then would be out of order."""
    producer, closer, leader = store.engine(), store.engine(), store.engine()
    child = dependant(producer, attempt.job_id, key="aa")
    with stopped_at(store, child, closer, fail, closer, attempt):
        late = dependant(producer, child)
    assert closer.state(late) == "blocked"
    look(leader)
    assert closer.state(late) == "cancelled"
