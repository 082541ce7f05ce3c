"""The caller's rows and the completion of exactly this attempt commit together or not at all."""

import psycopg
import pytest

from tests.engine import AUTHORITIES, Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

LEASED = pytest.mark.parametrize("attempt", AUTHORITIES, indirect=True)


@pytest.fixture
def attempt(engine: Engine, request: pytest.FixtureRequest) -> Attempt:
    """The second attempt of a batch of three, so that no index is one by accident."""
    attempt = engine.take(3)[1]
    engine.under(getattr(request, "param", "receipt"), attempt)
    return attempt


def refused(engine: Engine, token: dict[str, int]) -> str:
    with pytest.raises(psycopg.Error) as caught:
        engine.call("complete_job", **token, progress=None)
    assert caught.value.diag.message_hint
    return caught.value.sqlstate


@LEASED
def test_both_commit_or_neither(store: Store, engine: Engine, attempt: Attempt):
    """A rollback undoes the completion, a commit shows both at once."""
    for ending, state, rows in (("rollback", "running", 0), ("commit", "completed", 1)):
        caller = store.engine().begin()
        caller.sql("insert into app.invoice values (%s)", attempt.job_id)
        caller.complete_job(attempt)
        assert (engine.state(attempt.job_id), engine.value("select count(*) from app.invoice")) == (
            "running",
            0,
        )
        getattr(caller, ending)()
        assert (engine.state(attempt.job_id), engine.value("select count(*) from app.invoice")) == (
            state,
            rows,
        )


@LEASED
def test_the_receipt_repeats_the_token(engine: Engine, attempt: Attempt):
    """With the outcome, the time and the transaction."""
    receipt = engine.complete_job(attempt)
    assert {field: getattr(receipt, field) for field in attempt.token} == attempt.token
    assert (receipt.contract_version, receipt.outcome) == (1, "completed")
    status = engine.status(attempt)
    assert (status.state, status.outcome, status.finished_at) == (
        "closed",
        "completed",
        receipt.finished_at,
    )


@LEASED
def test_a_second_completion_is_stale(engine: Engine, attempt: Attempt):
    """Unlike a batch, a caller has written rows that must not be written twice."""
    engine.complete_job(attempt)
    assert refused(engine, attempt.token) == "OC001"


@LEASED
@pytest.mark.parametrize(
    "field", ["job_id", "run_lease", "claim_slot", "receipt_id", "batch_id", "batch_index"]
)
@pytest.mark.parametrize("value", [None, 0, -1, 1, 2, 2**31 - 1])
def test_every_field_of_the_token_counts(
    engine: Engine, attempt: Attempt, field: str, value: int | None
):
    """One wrong field, null or beyond any array, and the token names nothing."""
    if value == attempt.token[field]:
        value = 3
    assert refused(engine, attempt.token | {field: value}) == "OC001"
    assert engine.status(attempt).state == "open"


def test_fields_of_two_valid_tokens_do_not_mix(engine: Engine):
    """Each pair of attempts differs in more than one field."""
    one, two = engine.take(2)
    [three] = engine.take()
    for a, b in ((one, two), (one, three), (three, one)):
        for field in a.token:
            if a.token[field] != b.token[field]:
                assert refused(engine, a.token | {field: b.token[field]}) == "OC001"


@pytest.mark.parametrize("authority", AUTHORITIES)
def test_a_transaction_that_began_before_the_claim_is_refused(store: Store, authority: str):
    """A transaction held across the handler pins the horizon of the whole database."""
    caller = store.engine()
    caller.begin()
    caller.sql("select 1")
    worker = store.engine()
    [late] = worker.take()
    worker.under(authority, late)
    with pytest.raises(psycopg.Error) as caught:
        caller.complete_job(late)
    assert caught.value.sqlstate == "OC005"
    caller.rollback()


CLOCK_AHEAD = """
create or replace function onecommit.store_now() returns timestamptz
language sql volatile as $$ select clock_timestamp() + interval '6 seconds' $$
"""


@LEASED
def test_a_transaction_older_than_allowed_is_refused(engine: Engine, attempt: Attempt):
    """The store says how old it may be."""
    engine.begin()
    engine.sql("update onecommit.store_metadata set finalization_max_age = '5 seconds'")
    engine.sql(CLOCK_AHEAD)
    assert refused(engine, attempt.token) == "OC005"
    engine.rollback()
    assert engine.status(attempt).state == "open"


def test_several_jobs_may_complete_in_one_transaction(engine: Engine):
    """Each with its own token."""
    attempts = engine.take(3)
    with engine.open():
        receipts = [engine.complete_job(attempt) for attempt in attempts]
    assert len({receipt.transaction_id for receipt in receipts}) == 1
    assert {engine.state(a.job_id) for a in attempts} == {"completed"}


def test_a_follow_up_commits_with_it(engine: Engine):
    """A job enqueued in the same transaction is there exactly if the completion is."""
    first, second = engine.take(2)
    with engine.open():
        lost = engine.enqueue_one()
        engine.complete_job(first)
        engine.rollback()
    with engine.open():
        follow_up = engine.enqueue_one()
        engine.complete_job(second)
    assert [a.job_id for a in engine.drain()] == [follow_up]
    assert engine.state(lost) is None


def test_status_names_who_holds_the_attempt(store: Store, engine: Engine, attempt: Attempt):
    """A commit may be in flight: the worker asks again instead of deciding."""
    caller = store.engine().begin()
    caller.complete_job(attempt)
    status = engine.status(attempt)
    assert (status.state, status.holder_pid, status.outcome) == ("in_flight", caller.pid, None)
    caller.rollback()
    status = engine.status(attempt)
    assert (status.state, status.holder_pid) == ("open", None)


STOP = "select pg_advisory_xact_lock_shared(1);"


@LEASED
def test_status_misses_no_commit_between_its_looks(store: Store, engine: Engine, attempt: Attempt):
    """What looked open and is held by nobody any more is looked at again: the holder has committed meanwhile."""
    caller, holder = store.engine().begin(), store.engine()
    caller.complete_job(attempt)
    holder.sql("select pg_advisory_lock(1)")
    engine.begin()
    question = engine.value("select pg_get_functiondef('onecommit.attempt_lock_holder'::regproc)")
    engine.sql(question.replace("$function$", f"$function$ {STOP}", 1))
    with store.blocked(engine, engine.status, attempt, by=holder) as answer:
        caller.commit()
        holder.sql("select pg_advisory_unlock(1)")
    engine.rollback()
    assert (answer.result().state, answer.result().outcome) == ("closed", "completed")


def test_status_of_a_foreign_token_is_unknown(engine: Engine, attempt: Attempt):
    """It gives nothing away."""
    status = engine.call("attempt_status", **attempt.token | {"receipt_id": 1})[0]
    assert tuple(status) == ("unknown", None, None, None)


def test_an_old_lease_does_not_close_the_new_attempt(engine: Engine, attempt: Attempt):
    """Each attempt has its own row, so a late token meets its own closed one."""
    engine.finish([attempt], "retried")
    engine.promote()
    [again] = engine.claim().attempts
    assert again.run_lease == 2
    assert refused(engine, attempt.token) == "OC001"
    assert engine.complete_job(again).outcome == "completed"


def test_the_completion_is_found_by_its_primary_key(engine: Engine):
    """The outcome stands in the row that the fence is made of."""
    [attempt] = engine.take()
    engine.complete_job(attempt)
    rows = engine.sql(
        "select outcome from onecommit.completion where lane = %s and seq = %s", *attempt.place
    )
    assert [row.outcome for row in rows] == ["completed"]


def test_completed_attempts_are_told_by_their_positions(engine: Engine):
    """Others are not named: open, closed otherwise, moved to a lease, or of a chapter that is gone."""
    attempts = engine.take(6)
    batched, open_, caller_owned, retried, leased, failed = attempts
    engine.complete([batched])
    engine.complete_job(caller_owned)
    engine.finish([retried], "retried")
    engine.finish([failed], "failed")
    assert engine.materialize(leased)
    assert engine.completed(attempts) == [True, False, True, False, False, False]
    assert engine.completed([open_, caller_owned]) == [False, True]
    engine.sql("select setval('onecommit.tail_fence', %s)", caller_owned.chapter + 1)
    assert engine.completed(attempts) == [False] * 6
