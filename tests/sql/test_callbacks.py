"""An attempt that waits for the outside: one resolution counts, whenever it comes, and the token stays what it was."""

import json
import uuid

import psycopg
import pytest

from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

CLOSING = {
    "complete_external": "completed",
    "fail_external": "dead",
    "retry_external": "scheduled",
}
RESOLVING = ("resume_external", *CLOSING)


def resolve(engine: Engine, how: str, callback: str) -> str:
    return getattr(engine, how)(callback)


def rescued(engine: Engine) -> Attempt:
    """The job's next attempt, after its worker was lost."""
    engine.retire()
    assert engine.rescue().rescued == 1
    engine.promote()
    engine.register()
    [attempt] = engine.claim().attempts
    return attempt


def test_a_resume_reaches_the_handler_that_waits(engine: Engine):
    """Its job counts as waiting until then, and the payload comes once it is asked for."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    assert engine.state(attempt.job_id) == "running"
    assert engine.wait_for(attempt, callback) == []
    assert engine.state(attempt.job_id) == "waiting"
    assert engine.resume_external(callback, {"paid": True}) == "accepted"
    assert engine.state(attempt.job_id) == "running"
    assert engine.wait_for(attempt, callback) == [("resumed", {"paid": True})]
    assert engine.complete([attempt]) == ["closed"]
    assert engine.state(attempt.job_id) == "completed"


def test_a_waiting_job_is_listed_as_such(engine: Engine):
    """And not among those that run."""
    [attempt] = engine.take()
    engine.wait_for(attempt, engine.callback(attempt))
    found = {
        state: engine.call(
            "list_jobs", p_state=state, p_queue=None, p_kind=None, p_limit=9, p_before=None
        )
        for state in ("waiting", "running")
    }
    assert [row.job_id for row in found["waiting"]] == [attempt.job_id]
    assert found["running"] == []


def waits(engine: Engine, **filters: object) -> list[object]:
    named = {"p_job_id": None, "p_queue": None, "p_kind": None, "p_limit": 100, "p_before": None}
    return engine.call("list_callbacks", **named | filters)


def test_what_waits_for_an_answer_is_listed_without_its_id(engine: Engine):
    """By job, newest first; resolved, orphaned and ended ones are not."""
    first, second, over = engine.take(3)
    engine.callback(over)
    asked = engine.callback(first, name="provider")
    engine.callback(first)
    engine.wait_for(second, engine.callback(second))
    engine.finish([over], "retried", delay_us=10**9, lock=True)
    found = waits(engine)
    assert [(row.job_id, row.name, row.awaited, row.state) for row in found] == [
        (second.job_id, None, True, "waiting"),
        (first.job_id, "provider", False, "running"),
        (first.job_id, None, False, "running"),
    ]
    assert {(row.queue, row.kind, row.attempt) for row in found} == {("q", "k", 1)}
    assert all(row.timeout_at > row.registered_at for row in found)
    assert "callback_id" not in found[0]._fields
    assert waits(engine, p_limit=1) == found[:1]
    assert waits(engine, p_before=second.job_id) == found[1:]
    assert waits(engine, p_job_id=first.job_id, p_queue="q", p_kind="k") == found[1:]
    assert waits(engine, p_queue="other") == waits(engine, p_kind="other") == []
    assert engine.resume_external(asked) == "accepted"
    assert len(waits(engine, p_job_id=first.job_id)) == 1
    engine.cancel(first.job_id, second.job_id)
    assert waits(engine) == []


def test_a_callback_with_a_name_is_listed_between_two_attempts(engine: Engine):
    """It belongs to the job, which may ask for it again."""
    [attempt] = engine.take()
    engine.callback(attempt, name="provider")
    engine.finish([attempt], "retried", delay_us=10**9, lock=True)
    assert [(row.name, row.state) for row in waits(engine)] == [("provider", "scheduled")]


def test_an_early_resume_is_kept(engine: Engine):
    """The outside may be faster than the handler."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    assert engine.resume_external(callback, 7) == "accepted"
    assert engine.wait_for(attempt, callback) == [("resumed", 7)]


@pytest.mark.parametrize("second", RESOLVING)
def test_the_first_resolution_counts(engine: Engine, second: str):
    """A second one of any kind is told so and changes nothing."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    engine.resume_external(callback, "first")
    assert resolve(engine, second, callback) == "already_resolved"
    assert engine.wait_for(attempt, callback) == [("resumed", "first")]
    assert engine.status(attempt).state == "open"


@pytest.mark.parametrize(("how", "state"), CLOSING.items())
def test_the_outside_ends_the_attempt(engine: Engine, how: str, state: str):
    """The handler's worker hears of it as of a cancellation, and what the handler wants afterwards is stale."""
    [attempt] = engine.take(1, unique={"key": "ab"})
    callback = engine.callback(attempt)
    assert resolve(engine, how, callback) == "accepted"
    assert engine.state(attempt.job_id) == state
    told = engine.heartbeat()
    assert (told.cancel_job_ids, told.cancel_run_leases) == ([attempt.job_id], [attempt.run_lease])
    assert engine.finish([attempt], "snoozed") == ["stale"]
    with pytest.raises(psycopg.Error) as refused:
        engine.complete_job(attempt)
    assert refused.value.sqlstate == "OC001"
    assert resolve(engine, how, callback) == "already_resolved"
    held = engine.value("select count(*) from onecommit.unique_key")
    assert held == (1 if state == "scheduled" else 0)


def test_what_the_outside_said_is_kept_with_the_job(engine: Engine):
    """Result and progress of a completion, code and reason of a failure."""
    done, failed = engine.take(2)
    engine.set_progress([done], {"step": 2})
    assert engine.complete_external(engine.callback(done), {"id": 5}) == "accepted"
    assert engine.fail_external(engine.callback(failed)) == "accepted"
    detail = json.loads(engine.job(done.job_id).detail)
    assert detail == {"result": {"id": 5}, "progress": {"step": 2}}
    job = engine.job(failed.job_id)
    assert (job.code, json.loads(job.detail)) == ("callback_failed", {"error": "declined"})


def test_a_retry_from_outside_counts_and_ends_with_the_last_attempt(engine: Engine):
    """Like any other failed attempt."""
    [attempt] = engine.take(1, max_attempts=2)
    assert engine.retry_external(engine.callback(attempt)) == "accepted"
    engine.promote()
    [again] = engine.claim().attempts
    assert (again.number, again.run_lease) == (2, attempt.run_lease + 1)
    assert engine.retry_external(engine.callback(again)) == "accepted"
    assert engine.job(attempt.job_id).state == "dead"


def test_a_retry_from_outside_waits(engine: Engine):
    """For as long as it says."""
    [attempt] = engine.take()
    engine.retry_external(engine.callback(attempt), delay_us=10**9)
    assert engine.promote().promoted == 0


def test_sequential_waits_leave_the_token_as_it_was(engine: Engine):
    """Two callbacks one after the other, then the caller's transaction completes under the token of the claim."""
    [attempt] = engine.take()
    for number in range(2):
        callback = engine.callback(attempt)
        assert engine.wait_for(attempt, callback) == []
        assert engine.resume_external(callback, number) == "accepted"
        assert engine.wait_for(attempt, callback) == [("resumed", number)]
        assert engine.status(attempt).state == "open"
    with engine.open():
        engine.sql("insert into app.invoice values (%s)", attempt.job_id)
        receipt = engine.complete_job(attempt)
    assert {field: getattr(receipt, field) for field in attempt.token} == attempt.token
    assert engine.state(attempt.job_id) == "completed"
    assert engine.status(attempt).outcome == "completed"


@pytest.mark.parametrize("how", RESOLVING)
def test_a_resolution_joins_the_transaction_of_its_caller(store: Store, engine: Engine, how: str):
    """Rolled back it never happened, and the callback can still be resolved."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    caller = store.engine().begin()
    assert resolve(caller, how, callback) == "accepted"
    caller.rollback()
    assert engine.status(attempt).state == "open"
    assert engine.resume_external(callback) == "accepted"


@pytest.mark.parametrize("how", RESOLVING)
@pytest.mark.parametrize("ending", ["complete", "complete_job", "cancel", "failed"])
def test_after_the_job_has_ended(engine: Engine, how: str, ending: str):
    """The answer says so, also for a callback with a name, and nothing changes."""
    [attempt] = engine.take()
    callbacks = [engine.callback(attempt), engine.callback(attempt, name="payment")]
    match ending:
        case "complete":
            engine.complete([attempt])
        case "complete_job":
            engine.complete_job(attempt)
        case "cancel":
            engine.cancel(attempt.job_id)
        case "failed":
            engine.finish([attempt], "failed")
    before = engine.job(attempt.job_id)
    assert [resolve(engine, how, callback) for callback in callbacks] == ["ended", "ended"]
    assert engine.job(attempt.job_id) == before


def test_a_timeout_is_final(engine: Engine):
    """Whether the handler asks, or maintenance finds it, a late resolution is told."""
    [attempt] = engine.take()
    asked, found, unseen = (engine.callback(attempt, timeout_us=1) for _ in range(3))
    assert engine.wait_for(attempt, asked) == [("timed_out", None)]
    assert engine.resume_external(unseen) == "timed_out"
    engine.rescue()
    rows = engine.sql("select distinct resolution from onecommit.callback")
    assert [row.resolution for row in rows] == ["timed_out"]
    assert {engine.resume_external(each) for each in (asked, found, unseen)} == {"timed_out"}
    assert engine.status(attempt).state == "open"


def test_callbacks_are_forgotten_a_week_after_they_were_resolved(engine: Engine):
    """Those that are pending, and younger ones, stay."""
    [attempt] = engine.take()
    old, young, _ = (engine.callback(attempt) for _ in range(3))
    engine.resume_external(old)
    engine.resume_external(young)
    engine.sql(
        "update onecommit.callback set resolved_at = resolved_at - interval '8 days' where callback_id = %s",
        old,
    )
    engine.rescue()
    assert engine.resume_external(old) == "unknown"
    assert engine.value("select count(*) from onecommit.callback") == 2


def test_registering_twice_after_a_lost_reply_is_one_callback(engine: Engine):
    """The worker chooses the id, so that it can repeat the call."""
    [attempt] = engine.take()
    token = {f"p_{field}": value for field, value in attempt.token.items()}
    chosen = str(uuid.uuid4())
    for _ in range(2):
        row = engine.call(
            "register_callback", p_callback=chosen, **token, p_name=None, p_timeout_us=10**6
        )[0]
        assert row.callback_id == chosen
    assert engine.value("select count(*) from onecommit.callback") == 1


def test_an_id_that_another_attempt_uses_is_refused(engine: Engine):
    """Nobody takes over a foreign callback by naming its id."""
    first, second = engine.take(2)
    callback = engine.callback(first)
    token = {f"p_{field}": value for field, value in second.token.items()}
    with pytest.raises(psycopg.Error, match="callback: the id is taken"):
        engine.call(
            "register_callback", p_callback=callback, **token, p_name=None, p_timeout_us=10**6
        )
    assert engine.wait_for(second, callback) == [("foreign", None)]


# --- a worker is lost


def test_an_unnamed_callback_ends_with_its_attempt(engine: Engine):
    """The next attempt asks the outside anew."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    again = rescued(engine)
    assert engine.resume_external(callback) == "ended"
    assert engine.wait_for(again, callback) == [("foreign", None)]


@pytest.mark.parametrize("when", ["before", "between", "while scheduled", "after"])
def test_a_named_callback_belongs_to_the_job(engine: Engine, when: str):
    """What the outside says is found by the attempt that registers the name next, whenever it came."""
    [attempt] = engine.take()
    callback = engine.callback(attempt, name="payment")
    if when == "before":
        assert engine.resume_external(callback, 1) == "accepted"
    engine.retire()
    engine.rescue()
    if when == "while scheduled":
        assert engine.resume_external(callback, 1) == "accepted"
    engine.promote()
    engine.register()
    [again] = engine.claim().attempts
    if when == "between":
        assert engine.resume_external(callback, 1) == "accepted"
    assert engine.callback(again, name="payment") == callback
    if when == "after":
        assert engine.wait_for(again, callback) == []
        assert engine.resume_external(callback, 1) == "accepted"
    assert engine.wait_for(again, callback) == [("resumed", 1)]
    assert engine.wait_for(attempt, callback) == [("foreign", None)]


@pytest.mark.parametrize(
    ("how", "state"), [("complete_external", "completed"), ("fail_external", "dead")]
)
def test_an_end_that_came_while_no_attempt_ran_is_applied_by_the_next(
    engine: Engine, how: str, state: str
):
    """As soon as it registers the name: its handler is stopped like any other."""
    [attempt] = engine.take()
    callback = engine.callback(attempt, name="payment")
    engine.retire()
    engine.rescue()
    assert resolve(engine, how, callback) == "accepted"
    assert engine.state(attempt.job_id) == "scheduled"
    engine.promote()
    engine.register()
    [again] = engine.claim().attempts
    assert engine.callback(again, name="payment") == callback
    assert engine.state(attempt.job_id) == state
    assert engine.heartbeat().cancel_run_leases == [again.run_lease]


@pytest.mark.parametrize("spent_by", ["retry_external", "timeout"])
def test_a_spent_name_gives_a_new_callback(engine: Engine, spent_by: str):
    """After a retry that the outside asked for, or a timeout, the next attempt asks anew."""
    [attempt] = engine.take()
    timeout = 1 if spent_by == "timeout" else 10**9
    callback = engine.callback(attempt, name="payment", timeout_us=timeout)
    if spent_by == "timeout":
        engine.finish([attempt], "retried")
    else:
        engine.retry_external(callback)
    engine.promote()
    [again] = engine.claim().attempts
    fresh = engine.callback(again, name="payment", timeout_us=10**9)
    assert fresh != callback
    assert engine.wait_for(again, fresh) == []
    assert engine.resume_external(callback) != "accepted"


def test_a_retried_dead_letter_asks_anew_for_what_failed_it(engine: Engine):
    """Else each attempt would be failed again by the answer to the first; other answers stay."""
    [attempt] = engine.take()
    asked, failed = (engine.callback(attempt, name=name) for name in ("address", "payment"))
    assert engine.resume_external(asked, "here") == "accepted"
    assert engine.fail_external(failed) == "accepted"
    assert engine.retry_dead(attempt.job_id) == {attempt.job_id: "retried"}
    [again] = engine.claim().attempts
    fresh = engine.callback(again, name="payment")
    assert fresh != failed
    assert engine.callback(again, name="address") == asked
    assert engine.state(attempt.job_id) == "running"
    assert engine.fail_external(failed) != "accepted"


def test_one_name_is_one_callback_of_the_attempt(engine: Engine):
    """A handler may register it again; another job's is another one."""
    first, second = engine.take(2)
    assert engine.callback(first, name="a") == engine.callback(first, name="a")
    assert engine.callback(first, name="b") != engine.callback(first, name="a")
    assert engine.callback(second, name="a") != engine.callback(first, name="a")


# --- bad input


@pytest.mark.parametrize("how", RESOLVING)
def test_an_unknown_id(engine: Engine, how: str):
    """Has its own answer."""
    assert resolve(engine, how, str(uuid.uuid4())) == "unknown"


@pytest.mark.parametrize("how", ["resume_external", "complete_external"])
@pytest.mark.parametrize(
    "payload",
    ['"a\\u0000b"', '"\\ud800"', "{", "", '"' + "x" * 1_048_576 + '"'],
    ids=["NUL", "surrogate", "no JSON", "empty", "too large"],
)
def test_a_payload_that_cannot_be_kept_is_refused(engine: Engine, how: str, payload: str):
    """By name, never by value, and the callback stays pending."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    field = "p_payload" if how == "resume_external" else "p_result"
    with pytest.raises(psycopg.Error, match="payload: must be JSON") as refused:
        engine.call(how, p_callback=callback, **{field: payload})
    assert refused.value.sqlstate == "22023"
    assert "CONTEXT" not in str(refused.value.diag.message_primary)
    assert engine.wait_for(attempt, callback) == []


def test_no_payload_is_null(engine: Engine):
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    assert engine.call("resume_external", p_callback=callback, p_payload=None)[0][0] == "accepted"
    assert engine.wait_for(attempt, callback) == [("resumed", None)]


@pytest.mark.parametrize("timeout_us", [0, -1, -(2**63), 2**63 - 1, None])
def test_a_timeout_out_of_range_is_refused(engine: Engine, timeout_us: int | None):
    [attempt] = engine.take()
    with pytest.raises(psycopg.Error, match="timeout: must be"):
        engine.callback(attempt, timeout_us=timeout_us)
    assert engine.value("select count(*) from onecommit.lease") == 0


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_a_name_out_of_range_is_refused(engine: Engine, name: str):
    [attempt] = engine.take()
    with pytest.raises(psycopg.Error, match="name: must have"):
        engine.callback(attempt, name=name)


@pytest.mark.parametrize("delay_us", [-1, 2**63 - 1])
def test_a_delay_out_of_range_is_refused(engine: Engine, delay_us: int):
    [attempt] = engine.take()
    with pytest.raises(psycopg.Error, match="delay: must be"):
        engine.retry_external(engine.callback(attempt), delay_us=delay_us)


FORGERIES = {
    "receipt_id": lambda v: v + 1,
    "run_lease": lambda v: v + 1,
    "claim_slot": lambda v: (v + 1) % 6,
    "batch_id": lambda v: v + 1,
    "batch_index": lambda v: v + 1,
    "job_id": lambda v: v + 1,
}


@pytest.mark.parametrize("leased", [False, True])
@pytest.mark.parametrize("field", FORGERIES)
def test_a_forged_token_registers_nothing(engine: Engine, field: str, leased: bool):
    """Whatever field is wrong, before and after materialization."""
    [attempt] = engine.take()
    if leased:
        engine.materialize(attempt)
    token = {f"p_{name}": value for name, value in attempt.token.items()}
    token[f"p_{field}"] = FORGERIES[field](token[f"p_{field}"])
    with pytest.raises(psycopg.Error) as refused:
        engine.call("register_callback", p_callback=None, **token, p_name=None, p_timeout_us=1)
    assert refused.value.sqlstate == "OC001"


@pytest.mark.parametrize("outcome", ["completed", "retried", "cancelled"])
@pytest.mark.parametrize("leased", [False, True])
def test_a_closed_attempt_registers_nothing(engine: Engine, outcome: str, leased: bool):
    """It is stale, like everything that it does."""
    [attempt] = engine.take()
    if leased:
        engine.materialize(attempt)
    if outcome == "completed":
        engine.complete([attempt])
    else:
        engine.finish([attempt], outcome)
    with pytest.raises(psycopg.Error) as refused:
        engine.callback(attempt)
    assert refused.value.sqlstate == "OC001"


def test_another_epoch_resolves_nothing(engine: Engine):
    """A process of an old epoch is fenced here too."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    engine.epoch -= 1
    for how in RESOLVING:
        with pytest.raises(psycopg.Error) as refused:
            resolve(engine, how, callback)
        assert refused.value.sqlstate == "OC004"
    engine.epoch += 1


@pytest.mark.parametrize("how", RESOLVING)
def test_an_answer_needs_read_committed(engine: Engine, how: str):
    """Under another level the truth at commit cannot be seen."""
    [attempt] = engine.take()
    callback = engine.callback(attempt)
    with pytest.raises(psycopg.Error) as refused, engine.open("repeatable read"):
        resolve(engine, how, callback)
    assert refused.value.sqlstate == "OC006"


@pytest.mark.parametrize("way", ["materialized", "cancelled while scheduled"])
@pytest.mark.parametrize("options", [{}, {"tags": ["a"]}], ids=["plain", "tagged"])
def test_the_history_of_an_ended_lease_tells_queue_priority_and_options(
    engine: Engine, way: str, options: dict[str, object]
):
    """As if the job had ended where it was claimed."""
    if way == "materialized":
        [attempt] = engine.take(1, priority=3, **options)
        job_id = attempt.job_id
        engine.complete_external(engine.callback(attempt))
    else:
        job_id = engine.enqueue_one(priority=3, delay_us=10**9, **options)
        engine.cancel(job_id)
    job = engine.job(job_id)
    assert (job.queue, job.priority) == ("q", 3)
    assert (job.options and json.loads(job.options)) == (options or None)
    listed = engine.call(
        "list_jobs", p_state=None, p_queue="q", p_kind=None, p_limit=9, p_before=None
    )
    assert [row.job_id for row in listed] == [job_id]
