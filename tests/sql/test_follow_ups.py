"""An attempt is closed and its follow-ups are enqueued in one transaction, or neither is."""

import psycopg
import pytest

from tests.engine import Engine
from tests.observe import wait_until_blocked
from tests.stores import Store

pytestmark = pytest.mark.pg

OUTCOMES = ["completed", "retried", "failed", "discarded", "cancelled"]
FOLLOW_UP = (1, {})


def followed(engine: Engine, queue: str = "after") -> list[str]:
    """The arguments of the follow-ups that wait."""
    return [attempt.args for attempt in engine.drain(queue=queue)]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_closing_brings_its_follow_ups_once(engine: Engine, outcome: str):
    """Called again, as after a lost reply, it is success and enqueues nothing."""
    [attempt] = engine.take(1)
    for _ in range(2):
        assert engine.close_with_follow_ups([attempt], outcome, follow_ups=[FOLLOW_UP]) == [
            "closed"
        ]
    assert engine.status(attempt).outcome == outcome
    assert len(followed(engine)) == 1


def test_each_attempt_of_a_batch_brings_its_own(engine: Engine):
    """In any number, to any queue, with and without options."""
    attempts = engine.take(3)
    follow_ups = [
        (3, {"args": '{"n": 3}'}),
        (1, {"args": '{"n": 1}', "options": '{"priority": 1}'}),
        (1, {"args": '{"n": 11}', "queue": "other"}),
        (1, {"args": '{"n": 111}', "options": '{"delay_us": 3600000000}'}),
    ]
    assert engine.close_with_follow_ups(attempts, follow_ups=follow_ups) == ["closed"] * 3
    assert sorted(followed(engine)) == ['{"n": 1}', '{"n": 3}']
    assert followed(engine, "other") == ['{"n": 11}']
    assert engine.value("select count(*) from onecommit.scheduled") == 1


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_stale_attempt_brings_none(engine: Engine, outcome: str):
    """Also beside one in the same call that wins."""
    lost, won = engine.take(2)
    engine.finish([lost], "snoozed")
    verdicts = engine.close_with_follow_ups(
        [lost, won], outcome, follow_ups=[(1, {"kind": "lost"}), (2, {"kind": "won"})]
    )
    assert verdicts == ["stale", "closed"]
    assert [attempt.kind for attempt in engine.drain(queue="after")] == ["won"]


def test_a_retry_of_the_last_attempt_is_recognised_after_a_lost_reply(engine: Engine):
    """The recorded outcome is another than the one asked for, and yet nothing is enqueued twice."""
    [attempt] = engine.take(1, max_attempts=1)
    for _ in range(2):
        assert engine.close_with_follow_ups([attempt], "retried", follow_ups=[FOLLOW_UP]) == [
            "closed"
        ]
    assert engine.status(attempt).outcome == "failed"
    assert len(followed(engine)) == 1


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_materialized_attempt_brings_its_follow_ups_once(engine: Engine, outcome: str):
    """Its lease is the authority then."""
    [attempt] = engine.take(1)
    assert engine.materialize(attempt)
    for _ in range(2):
        assert engine.close_with_follow_ups([attempt], outcome, follow_ups=[FOLLOW_UP]) == [
            "closed"
        ]
    assert len(followed(engine)) == 1


@pytest.mark.parametrize(
    ("bad", "state"),
    [
        ({"args": "{"}, "22023"),
        ({"args": '{"a": "\\u0000"}'}, "22023"),
        ({"kind": ""}, "22023"),
        ({"queue": ""}, "22023"),
        ({"options": '{"unknown": 1}'}, "22023"),
    ],
)
def test_a_follow_up_that_is_refused_leaves_the_attempt_open(engine: Engine, bad, state):
    """Nothing is half written."""
    [attempt] = engine.take(1)
    with pytest.raises(psycopg.Error) as refused:
        engine.close_with_follow_ups([attempt], follow_ups=[FOLLOW_UP, (1, bad)])
    assert refused.value.sqlstate == state
    assert engine.status(attempt).state == "open"
    assert followed(engine) == []


def test_a_job_may_follow_itself_under_its_own_unique_key(engine: Engine):
    """The key is released before the follow-up asks for it."""
    [attempt] = engine.take(1, unique={"key": "ab"})
    again = (1, {"options": '{"unique": {"key": "ab"}}'})
    engine.close_with_follow_ups([attempt], follow_ups=[again], side=[attempt.job_id])
    assert len(followed(engine)) == 1


def test_a_locked_attempt_is_busy_and_brings_nothing(store: Store):
    """Nobody waits for a caller whose commit may be in flight."""
    worker, caller = store.engine(), store.engine()
    [attempt] = worker.take(1)
    with caller.open():
        caller.complete_job(attempt)
        assert worker.close_with_follow_ups([attempt], "retried", follow_ups=[FOLLOW_UP]) == [
            "busy"
        ]
    assert worker.status(attempt).outcome == "completed"
    assert followed(worker) == []


def test_a_cancellation_that_comes_first_wins(store: Store):
    """The closing is busy until it has ended, then stale, and nothing follows."""
    worker, operator = store.engine(), store.engine().begin()
    [attempt] = worker.take(1)
    operator.cancel(attempt.job_id)
    assert worker.close_with_follow_ups([attempt], follow_ups=[FOLLOW_UP]) == ["busy"]
    operator.commit()
    assert worker.close_with_follow_ups([attempt], follow_ups=[FOLLOW_UP]) == ["stale"]
    assert followed(worker) == []


def test_a_cancellation_that_comes_later_finds_it_done(store: Store):
    """The follow-up stands."""
    worker, operator = store.engine().begin(), store.engine()
    [attempt] = store.engine().take(1)
    worker.close_with_follow_ups([attempt], follow_ups=[FOLLOW_UP])
    with store.blocked(operator, operator.cancel, attempt.job_id, by=worker) as result:
        worker.commit()
    assert result.result() == {attempt.job_id: "already_finished"}
    assert len(followed(operator)) == 1


@pytest.mark.parametrize("leased", [False, True], ids=["ready row", "lease"])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_repetition_beside_the_first_call_enqueues_nothing(
    store: Store, outcome: str, leased: bool
):
    """The connection is lost and the server still works on the first call; until it has ended all others are busy."""
    worker, first, second = store.engine(), store.engine().begin(), store.engine()
    [attempt] = worker.take(1)
    if leased:
        worker.materialize(attempt)
    first.close_with_follow_ups([attempt], outcome, follow_ups=[FOLLOW_UP])
    for verdict in ("busy", "closed"):
        again = second.close_with_follow_ups([attempt], outcome, follow_ups=[FOLLOW_UP])
        assert again == [verdict]
        first.commit()
    assert len(followed(worker)) == 1


def test_a_crash_between_closing_and_enqueueing_leaves_neither(store: Store):
    """Killed while the follow-up waits for a unique key, with the attempt closed already; then repeated."""
    worker, rival, witness = store.engine(), store.engine().begin(), store.engine()
    [attempt] = worker.take(1)
    unique = (1, {"options": '{"unique": {"key": "cd"}}'})
    rival.enqueue(queue="after", options={"unique": {"key": "cd"}})
    dying = store.background(worker.close_with_follow_ups, [attempt], follow_ups=[unique])
    wait_until_blocked(store.observer, worker.pid, by=rival.pid)
    store.observer.execute("select pg_terminate_backend(%s)", (worker.pid,))
    with pytest.raises(psycopg.OperationalError):
        dying.result(timeout=30)
    rival.rollback()
    assert witness.status(attempt).state == "open"
    assert followed(witness) == []
    assert witness.close_with_follow_ups([attempt], follow_ups=[unique]) == ["closed"]
    assert witness.status(attempt).outcome == "completed"
    assert len(followed(witness)) == 1


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_it_needs_read_committed(engine: Engine, isolation: str):
    """The look under the lock has to see what was committed before it."""
    [attempt] = engine.take(1)
    engine.begin(isolation)
    with pytest.raises(psycopg.Error) as refused:
        engine.close_with_follow_ups([attempt])
    assert refused.value.sqlstate == "OC006"


@pytest.mark.parametrize("outcome", ["snoozed", "moved", "materialized", "", None])
def test_other_outcomes_are_refused(engine: Engine, outcome):
    """Nothing follows a snooze, and the store's own outcomes are its own."""
    [attempt] = engine.take(1)
    with pytest.raises(psycopg.Error) as refused:
        engine.close_with_follow_ups([attempt], outcome)
    assert refused.value.sqlstate == "22023"


def test_closed_jobs_tells_what_became_of_them(engine: Engine):
    """Arguments only of the kinds asked for; a job that is gone is left out."""
    retried, dead, cancelled = engine.take(3)
    engine.finish([retried], "retried")
    engine.finish([dead], "discarded", code="c")
    engine.cancel(cancelled.job_id)
    ids = [retried.job_id, dead.job_id, cancelled.job_id, 999_999]
    rows = engine.call("closed_jobs", p_job_ids=ids, p_kinds=["other"])
    assert sorted((r.job_id, r.state, r.attempt, r.code, r.args) for r in rows) == [
        (retried.job_id, "scheduled", 1, None, None),
        (dead.job_id, "dead", 1, "c", None),
        (cancelled.job_id, "cancelled", 1, None, None),
    ]
    rows = engine.call("closed_jobs", p_job_ids=ids, p_kinds=["k"])
    assert {row.args for row in rows} == {'{"n": 0}', '{"n": 1}', '{"n": 2}'}


def test_rescue_names_the_jobs_it_took_back(engine: Engine):
    """Materialized attempts included, and none that somebody else holds."""
    plain, leased = engine.take(2)
    engine.materialize(leased)
    engine.retire()
    assert sorted(engine.rescue().job_ids) == [plain.job_id, leased.job_id]
    assert engine.rescue().job_ids == []
