"""Dependants wait for their parent, and its end sends each where the rule says, in the transaction that ends it."""

import json
from collections.abc import Callable

import psycopg
import pytest

from tests.engine import HOUR_US, Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

RULES = {"cancel": "cancelled", "enqueue": "ready", "discard": "dead"}
WAITING = "select job_id from onecommit.dependant order by job_id"
LEFT = "select job_id, outcome from onecommit.parent_end order by job_id"


def dependant(engine: Engine, parent: int, rule: str | None = None, **options) -> int:
    """The id of a new job that waits for the parent."""
    rules = {"on_parent_failure": rule} if rule else {}
    return engine.enqueue_one(after=parent, **rules, **options)


def one_of_each(engine: Engine, parent: int) -> dict[str, int]:
    return {rule: dependant(engine, parent, rule) for rule in RULES}


def states(engine: Engine, jobs: dict[str, int]) -> dict[str, str | None]:
    return {rule: engine.state(job) for rule, job in jobs.items()}


def parent_of(engine: Engine, job: int) -> dict:
    return json.loads(engine.job(job).options)["parent"]


# --- the ends of a parent ---


def lose_the_worker(engine: Engine, attempt: Attempt) -> None:
    engine.retire()
    engine.rescue()
    engine.register()


def pass_the_deadline(engine: Engine, attempt: Attempt) -> None:
    engine.sql(
        "update onecommit.claim set deadline = now() - interval '1s' where batch_id = %s",
        attempt.batch_id,
    )
    engine.rescue()


def as_lease(end: Callable[[Engine, Attempt], object]) -> Callable[[Engine, Attempt], object]:
    """The same end of an attempt that was materialized before."""

    def materialized(engine: Engine, attempt: Attempt) -> object:
        assert engine.materialize(attempt)
        return end(engine, attempt)

    return materialized


def complete_job(engine: Engine, attempt: Attempt) -> None:
    with engine.open():
        engine.complete_job(attempt)


COMPLETIONS = {
    "complete_jobs": lambda e, a: e.complete([a]),
    "complete_job": complete_job,
}
FAILURES = {
    "failed": lambda e, a: e.finish([a], "failed"),
    "exhausted": lambda e, a: e.finish([a], "retried"),
    "failed, with the lock": lambda e, a: e.finish([a], "failed", lock=True),
    "discarded": lambda e, a: e.finish([a], "discarded"),
    "cancelled by its handler": lambda e, a: e.finish([a], "cancelled"),
    "cancelled by an operator": lambda e, a: e.cancel(a.job_id),
    "worker lost": lose_the_worker,
    "deadline passed": pass_the_deadline,
}
LEASED_FAILURES = {
    name: as_lease(end) for name, end in FAILURES.items() if name != "deadline passed"
}
OUTCOMES = {
    "failed": ("failed", "handler_error"),
    "exhausted": ("failed", "handler_error"),
    "failed, with the lock": ("failed", "handler_error"),
    "discarded": ("discarded", "handler_error"),
    "cancelled by its handler": ("cancelled", None),
    "cancelled by an operator": ("cancelled", None),
    "worker lost": ("rescued", "worker_lost"),
    "deadline passed": ("rescued", "deadline_passed"),
}


@pytest.mark.parametrize("leased", [False, True], ids=["claimed", "leased"])
@pytest.mark.parametrize("end", COMPLETIONS)
def test_a_parent_that_completes_makes_its_dependants_ready(engine: Engine, end: str, leased: bool):
    """Whatever their rule, and at once: in the same transaction."""
    [attempt] = engine.take()
    jobs = one_of_each(engine, attempt.job_id)
    assert set(states(engine, jobs).values()) == {"blocked"}
    assert engine.claim().attempts == ()
    act = COMPLETIONS[end]
    (as_lease(act) if leased else act)(engine, attempt)
    assert set(states(engine, jobs).values()) == {"ready"}
    claimed = engine.claim().attempts
    assert [a.job_id for a in claimed] == list(jobs.values())
    assert {a.number for a in claimed} == {1}
    for claim in claimed:
        assert json.loads(claim.options) == {
            "parent": {"job_id": attempt.job_id, "outcome": "completed"}
        }


@pytest.mark.parametrize("end", FAILURES)
@pytest.mark.parametrize("leased", [False, True], ids=["claimed", "leased"])
def test_a_parent_that_ends_otherwise_sends_its_dependants_by_their_rule(
    engine: Engine, end: str, leased: bool
):
    """Cancelled, run all the same with the reason at hand, or in the dead letters."""
    ends = LEASED_FAILURES if leased else FAILURES
    if end not in ends:
        pytest.skip("a lease keeps its own deadline")
    [attempt] = engine.take(max_attempts=1)
    jobs = one_of_each(engine, attempt.job_id)
    ends[end](engine, attempt)
    assert states(engine, jobs) == RULES
    outcome, code = OUTCOMES[end]
    expected = {"job_id": attempt.job_id, "outcome": outcome} | ({"code": code} if code else {})
    for job in jobs.values():
        assert parent_of(engine, job) == expected
        assert engine.job(job).parent_id == attempt.job_id
    assert engine.job(jobs["discard"]).outcome == "discarded"
    assert engine.job(jobs["discard"]).code == "parent_failed"
    assert json.loads(engine.job(jobs["cancel"]).detail) == {"code": "parent_failed"}


@pytest.mark.parametrize("place", ["ready", "scheduled", "blocked"])
def test_a_parent_cancelled_before_it_ran_has_ended_too(engine: Engine, place: str):
    """Waiting in its lane, for its time, or for a parent of its own."""
    options = {"ready": {}, "scheduled": {"delay_us": HOUR_US}}.get(
        place, {"after": engine.enqueue_one()}
    )
    parent = engine.enqueue_one(**options)
    jobs = one_of_each(engine, parent)
    assert engine.cancel(parent) == {parent: "cancelled"}
    assert engine.state(parent) == "cancelled"
    assert states(engine, jobs) == RULES


@pytest.mark.parametrize("end", ["retried", "snoozed"])
def test_an_attempt_that_goes_on_ends_nothing(engine: Engine, end: str):
    """Nor does a rescue that leaves an attempt."""
    [attempt] = engine.take()
    jobs = one_of_each(engine, attempt.job_id)
    engine.finish([attempt], end)
    engine.promote()
    [attempt] = engine.claim().attempts
    lose_the_worker(engine, attempt)
    assert set(states(engine, jobs).values()) == {"blocked"}


def test_a_caller_that_rolls_back_releases_nothing(engine: Engine):
    """The release belongs to the caller's transaction."""
    [attempt] = engine.take()
    jobs = one_of_each(engine, attempt.job_id)
    with engine.open():
        engine.complete_job(attempt)
        engine.rollback()
    assert set(states(engine, jobs).values()) == {"blocked"}


def test_uniqueness_progress_and_dependants_change_in_one_transaction(store: Store):
    """Another session sees all of it or nothing of it."""
    caller, other = store.engine(), store.engine()
    [attempt] = caller.take(unique={"key": "ab"})
    caller.set_progress([attempt], {"done": 1})
    job = dependant(caller, attempt.job_id)
    seen = """
        select (select count(*) from onecommit.unique_key) as keys, (select count(*) from onecommit.progress) as progress,
               (select count(*) from onecommit.dependant) as blocked
    """
    with caller.open():
        caller.complete_job(attempt)
        assert other.sql(seen)[0] == (1, 1, 1)
        assert other.state(job) == "blocked"
    assert other.sql(seen)[0] == (0, 0, 0)
    assert other.state(job) == "ready"
    assert json.loads(other.job(attempt.job_id).detail) == {"progress": {"done": 1}}


# --- enqueueing ---


def test_a_parent_and_its_dependants_are_enqueued_in_one_transaction(engine: Engine):
    """All or none, and nobody has to look for a missed end."""
    with engine.open():
        parent = engine.enqueue_one()
        child = dependant(engine, parent)
        grandchild = dependant(engine, child)
    assert engine.state(child) == engine.state(grandchild) == "blocked"
    assert engine.value("select count(*) from onecommit.dependant where look_at is not null") == 0
    for job in (parent, child, grandchild):
        [attempt] = engine.claim().attempts
        assert attempt.job_id == job
        engine.complete([attempt])


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_parent_that_has_ended_already_decides_at_once(engine: Engine, end: str):
    """The dependant never waits."""
    [attempt] = engine.take()
    if end == "completed":
        engine.complete([attempt])
    else:
        engine.finish([attempt], end)
    jobs = one_of_each(engine, attempt.job_id)
    assert states(engine, jobs) == (dict.fromkeys(RULES, "ready") if end == "completed" else RULES)


@pytest.mark.parametrize("future", [False, True])
def test_a_parent_that_nobody_knows_is_refused(engine: Engine, future: bool):
    """Also the id that the dependant itself would get: a job cannot wait for itself, and there are no cycles."""
    engine.enqueue_one()
    parent = engine.enqueue_one() + 1 if future else 10**15
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="after: there is no such job"):
        dependant(engine, parent)
    assert engine.sql(WAITING) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"after": 0}, "after: must be an integer"),
        ({"after": "1"}, "after: must be an integer"),
        ({"after": 1.5}, "after: must be an integer"),
        ({"on_parent_failure": "cancel"}, "on_parent_failure: says nothing without after"),
        ({"after": 1, "on_parent_failure": "retry"}, "on_parent_failure: must be cancel"),
        ({"after": 1, "on_parent_failure": 7}, "on_parent_failure: must be cancel"),
    ],
)
def test_bad_options_are_refused_by_name(engine: Engine, options: dict, message: str):
    """Before anything is written."""
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        engine.enqueue(options=options)


def test_a_dependant_keeps_its_options(engine: Engine):
    """Time, priority, queue and attempts count from its release on."""
    [attempt] = engine.take()
    later = dependant(engine, attempt.job_id, delay_us=HOUR_US, priority=1, tags=["a"])
    now = dependant(engine, attempt.job_id, queue="other", max_attempts=3)
    engine.complete([attempt])
    assert (engine.state(later), engine.job(later).priority) == ("scheduled", 1)
    assert json.loads(engine.job(later).options)["tags"] == ["a"]
    [other] = engine.claim(queue="other").attempts
    assert (other.job_id, other.max_attempts) == (now, 3)
    engine.sql("update onecommit.scheduled set run_at = now()")
    engine.promote()
    assert engine.claim().job_ids == [later]


def test_options_for_each_job_may_name_different_parents(engine: Engine):
    """Some wait, some do not; ids come in order."""
    [first, second] = engine.enqueue(2).job_ids
    jobs = engine.enqueue(
        4, options=[{"after": first}, {}, {"after": second}, {"delay_us": HOUR_US}]
    ).job_ids
    assert [engine.state(job) for job in jobs] == ["blocked", "ready", "blocked", "scheduled"]


def test_a_blocked_job_holds_its_unique_key(engine: Engine):
    """Until it ends, in whatever way."""
    [attempt] = engine.take()
    key = {"unique": {"key": "ab"}}
    jobs = {}
    for rule in RULES:
        jobs[rule] = dependant(engine, attempt.job_id, rule, unique={"key": f"a{len(jobs)}"})
    again = engine.enqueue(options={"after": attempt.job_id, "unique": {"key": "a0"}})
    assert (again.job_ids, again.created) == ([jobs["cancel"]], [False])
    engine.finish([attempt], "failed")
    assert engine.value("select array_agg(job_id) from onecommit.unique_key") == [jobs["enqueue"]]
    assert engine.enqueue(options=key).created == [True]


def test_a_pool_of_lanes_that_is_used_up_is_found_at_enqueue(engine: Engine):
    """Not in the transaction that completes the parent."""
    parent = engine.enqueue_one()
    for n in range(64):
        engine.call("adopt_lane", p_queue=f"full {n}", p_priority=1)
        if not engine.sql("select lane from onecommit.lane where queue is null and lane > 0"):
            break
    with pytest.raises(psycopg.Error) as refused:
        dependant(engine, parent, queue="another")
    assert refused.value.sqlstate == "OC007"


# --- chains and crowds ---


CHAIN = """
do $$
declare
    v_parent bigint := {parent};
begin
    for i in 1..{length} loop
        v_parent := (select job_ids[1] from onecommit.enqueue_jobs('q', '{{k}}', '{{"{{}}"}}',
            jsonb_build_object('after', v_parent), {epoch}));
    end loop;
end $$
"""


def chain(engine: Engine, parent: int, length: int) -> list[int]:
    """Each waits for the one before it."""
    engine.sql(CHAIN.format(parent=parent, length=length, epoch=engine.epoch))
    return [row.job_id for row in engine.sql(WAITING)]


def test_a_failure_goes_down_the_generations(engine: Engine):
    """A cancelled dependant has ended, and its own dependants go by their rules."""
    [attempt] = engine.take()
    child = dependant(engine, attempt.job_id, "cancel")
    dead = dependant(engine, attempt.job_id, "discard")
    grandchildren = one_of_each(engine, child)
    others = one_of_each(engine, dead)
    engine.finish([attempt], "failed")
    assert states(engine, grandchildren) == states(engine, others) == RULES
    assert parent_of(engine, grandchildren["enqueue"])["outcome"] == "cancelled"
    assert parent_of(engine, others["enqueue"])["outcome"] == "discarded"


def test_a_long_chain_is_ended_in_bounded_steps(engine: Engine):
    """No transaction goes through all of it: the leader goes on from what is on record."""
    [attempt] = engine.take()
    jobs = chain(engine, attempt.job_id, 450)
    engine.finish([attempt], "failed")
    assert engine.value("select count(*) from onecommit.dependant") == 350
    assert engine.sql(LEFT) == [(jobs[99], "cancelled")]
    steps = 0
    while engine.sql(LEFT):
        assert engine.promote().next_in_us == 0 or not engine.sql(LEFT)
        steps += 1
    assert steps == 4
    assert engine.sql(WAITING) == []
    assert {engine.state(job) for job in jobs[::50]} == {"cancelled"}


GENERATIONS = """
insert into onecommit.dependant (job_id, parent_id, on_parent_failure, queue, priority, created_at, max_attempts, kind, args, options)
select %s + n, %s + n - 1, 'cancel', 'q', 2, now(), 1, 'k', '{}', '{}' from generate_series(1, 10000) n
"""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_chain_of_ten_thousand_is_ended(engine: Engine):
    """A hundred calls of a hundred generations, none of which takes long."""
    [attempt] = engine.take()
    dependant(engine, attempt.job_id)
    engine.sql(GENERATIONS, attempt.job_id + 1, attempt.job_id + 1)
    engine.sql("set statement_timeout = '10s'")
    engine.finish([attempt], "failed")
    for _ in range(101):
        engine.promote()
    assert engine.sql(WAITING) == []
    assert engine.sql(LEFT) == []


@pytest.mark.parametrize("end", ["completed", "failed"])
def test_a_crowd_of_dependants_is_released_in_bounded_steps(engine: Engine, end: str):
    """The first thousands with the parent, the rest by the leader."""
    [attempt] = engine.take()
    options = {"after": attempt.job_id}
    engine.enqueue(5_500, options=[options] * 5_500)
    if end == "completed":
        engine.complete([attempt])
    else:
        engine.finish([attempt], "failed")
    assert engine.value("select count(*) from onecommit.dependant") == 500
    assert engine.sql(LEFT) == [(attempt.job_id, end)]
    assert engine.promote().promoted == 1
    assert engine.sql(WAITING) == engine.sql(LEFT) == []
    if end == "completed":
        assert len(engine.drain(limit=1000)) == 5_500


# --- operators ---


def test_a_blocked_job_is_shown_with_its_parent(engine: Engine):
    """By id, in lists and in the counts of its queue."""
    parent = engine.enqueue_one()
    job = dependant(engine, parent, "discard")
    view = engine.job(job)
    assert (view.state, view.queue, view.attempt, view.parent_id) == ("blocked", "q", 0, parent)
    for state in ("blocked", None):
        listed = engine.call(
            "list_jobs", p_state=state, p_queue="q", p_kind="k", p_limit=10, p_before=None
        )
        assert (listed[0].job_id, listed[0].state, listed[0].parent_id) == (job, "blocked", parent)
    assert engine.call("list_queues")[0].blocked == 1
    assert engine.job(parent).parent_id is None


def test_a_blocked_job_can_be_cancelled(engine: Engine):
    """It leaves history, frees its key, and its parent's end does not bring it back."""
    [attempt] = engine.take()
    job = dependant(engine, attempt.job_id, unique={"key": "ab"})
    assert engine.cancel(job) == {job: "cancelled"}
    assert engine.cancel(job) == {job: "already_finished"}
    assert (engine.state(job), engine.job(job).detail) == ("cancelled", None)
    view = engine.job(job)
    assert (view.queue, view.priority, view.attempt) == ("q", 2, 0)
    assert json.loads(view.options)["parent"] == {"job_id": attempt.job_id}
    assert engine.enqueue(options={"unique": {"key": "ab"}}).created == [True]
    engine.complete([attempt])
    assert engine.state(job) == "cancelled"


def test_a_parent_and_its_dependants_can_be_cancelled_together(engine: Engine):
    """Whatever the order of the ids given, each is cancelled once."""
    parent = engine.enqueue_one()
    jobs = one_of_each(engine, parent)
    answer = engine.cancel(jobs["enqueue"], parent, *jobs.values())
    assert answer == dict.fromkeys((parent, *jobs.values()), "cancelled")


def test_the_first_end_of_a_parent_is_final_for_its_dependants(engine: Engine):
    """A dead parent that an operator retries brings back nobody; whoever comes later waits for the new end."""
    [attempt] = engine.take()
    jobs = one_of_each(engine, attempt.job_id)
    engine.finish([attempt], "failed")
    assert engine.retry_dead(attempt.job_id) == {attempt.job_id: "retried"}
    assert states(engine, jobs) == RULES
    late = dependant(engine, attempt.job_id)
    assert engine.state(late) == "blocked"
    attempts = {a.job_id: a for a in engine.claim().attempts}
    engine.complete([attempts[attempt.job_id]])
    assert engine.state(late) == "ready"


def test_a_discarded_dependant_can_be_retried_by_itself(engine: Engine):
    """It runs without its parent, and is told how that ended."""
    [attempt] = engine.take()
    job = dependant(engine, attempt.job_id, "discard")
    engine.finish([attempt], "failed")
    assert engine.retry_dead(job) == {job: "retried"}
    [again] = engine.claim().attempts
    assert (again.job_id, again.number) == (job, 1)
    assert json.loads(again.options)["parent"]["outcome"] == "failed"


# --- dead letters and unique keys ---


def dead_with_key(engine: Engine, **unique) -> int:
    [attempt] = engine.take(unique={"key": "ab"} | unique)
    engine.finish([attempt], "failed")
    return attempt.job_id


@pytest.mark.parametrize("window", [{}, {"window_us": HOUR_US}], ids=["no window", "window"])
def test_a_retried_dead_letter_takes_its_unique_key_again(engine: Engine, window: dict):
    """So a second one is refused as before, and its end frees the key."""
    job = dead_with_key(engine, **window)
    assert engine.retry_dead(job) == {job: "retried"}
    assert engine.enqueue(options={"unique": {"key": "ab"}}).job_ids == [job]
    [attempt] = engine.claim().attempts
    engine.complete([attempt], side=[job])
    assert engine.value("select bool_or(held) from onecommit.unique_key") is (
        False if window else None
    )


def test_a_dead_letter_whose_key_was_taken_is_not_retried(engine: Engine):
    """The answer says so, and it stays where it is until the other job has ended."""
    dead = dead_with_key(engine)
    other = dead_with_key(engine)
    assert engine.retry_dead(dead, other) == {dead: "retried", other: "key_held"}
    assert (engine.state(dead), engine.state(other)) == ("ready", "dead")
    [attempt] = engine.claim().attempts
    engine.complete([attempt], side=[dead])
    assert engine.retry_dead(other) == {other: "retried"}


# --- snapshots ---


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("moment", ["before the snapshot", "after the snapshot"])
def test_under_a_snapshot_the_leader_releases(store: Store, isolation: str, moment: str):
    """The caller's snapshot may be older than the dependant, so the end is put on record in its transaction."""
    caller, producer = store.engine(), store.engine()
    [attempt] = caller.take()
    jobs = one_of_each(producer, attempt.job_id) if moment == "before the snapshot" else {}
    caller.begin(isolation)
    caller.sql("select count(*) from app.invoice")
    jobs = jobs or one_of_each(producer, attempt.job_id)
    caller.complete_job(attempt)
    caller.commit()
    assert producer.sql(LEFT) == [(attempt.job_id, "completed")]
    producer.promote()
    assert set(states(producer, jobs).values()) == {"ready"}
    assert producer.sql(LEFT) == []
