"""What operators may record about Work that waits, and what comes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkPlan, WorkRetry

from tests.sql.work.rows import SUSPENDED
from tests.stores import EPOCH
from tests.works import MICROSECOND, SECOND, Runtime, Works

pytestmark = pytest.mark.pg

MINUTE = timedelta(minutes=1)
RECONCILED = Safety.RECONCILE_BEFORE_RETRY
MANUAL = Safety.MANUAL_RESOLUTION
KEYED = Safety.PROVIDER_KEYED


def leave_unknown(works: Works, runtime: Runtime, safety: Safety, **changes) -> tuple[int, int]:
    """Id and revision of Work whose provider call ended in the dark."""
    claimed = runtime.take(works.accept(safety=safety, **changes))
    runtime.invoke(claimed)
    event = "exception" if safety in (RECONCILED, MANUAL) else "ambiguous"
    done = runtime.complete(claimed, event)
    assert done.code == "ASDUR106"
    return claimed.work_id, done.revision


@contextmanager
def rotated(works: Works) -> Iterator[None]:
    """The store under a later epoch; the fence goes back afterwards, because the store is shared."""
    before = works.store.epoch
    store_id = works.value("select store_id from onecommit.store_status()")
    works.store.epoch = before + 1_000_000
    try:
        works.store.observer.execute(
            "select onecommit.rotate_epoch(%s, %s, %s, 'ada', 'restored')",
            (store_id, before, works.store.epoch),
        )
        yield
    finally:
        works.store.epoch = before
        works.store.observer.execute("select setval('onecommit.epoch_fence', %s, true)", (before,))
        works.store.observer.execute(
            "delete from onecommit.runtime_epoch_history where epoch > %s", (before,)
        )
        assert works.store.observer.execute(EPOCH).fetchone()[0] == before


# --- reconciling


@pytest.mark.parametrize(
    ("evidence", "result", "state", "outcome"),
    [
        ("applied", b'"paid"', "succeeded", "known_succeeded"),
        ("not_applied", None, "retry_wait", "proven_no_effect"),
        ("unknown", None, "suspended_reconciliation_required", "ambiguous"),
    ],
)
def test_a_reconciliation_records_what_it_found(
    works: Works, evidence: str, result: bytes | None, state: str, outcome: str
):
    """Only what is known moves the Work."""
    operator = works.operator()
    work_id, revision = leave_unknown(works, works.runtime(), RECONCILED)
    begun = operator.begin(work_id, p_command_id="ask")
    assert (begun.outcome, begun.revision, begun.attempt, begun.remaining) == (
        "started",
        revision,
        1,
        1,
    )
    assert begun.payload == b'{"cents":100}'
    assert begun.activity_id == works.read("get_work", p_work_id=work_id)[0].activity_id
    found = operator.finish(work_id, "ask", begun.revision, evidence, result=result)
    assert (found.outcome, found.state) == ("recorded", state)
    assert works.permits(work_id) == [(1, outcome, True)]
    again = operator.finish(work_id, "ask", begun.revision, evidence, result=result)
    assert (again.outcome, again.state, again.revision) == ("duplicate", state, found.revision)
    assert operator.begin(work_id, p_command_id="ask").outcome == "duplicate"
    if evidence == "applied":
        assert works.value("select result from onecommit.work_result") == result


def test_proof_of_absence_lets_it_run_again_under_a_new_permit(works: Works):
    """With the same activity."""
    runtime, operator = works.runtime(), works.operator()
    works.clock.stop()
    work_id, _ = leave_unknown(works, runtime, RECONCILED)
    begun = operator.begin(work_id, p_command_id="ask")
    operator.finish(work_id, "ask", begun.revision, "not_applied")
    works.clock.pass_(SECOND)
    [again] = runtime.claim(*works.due())
    runtime.invoke(again)
    assert (again.attempt, again.activity_id) == (2, begun.activity_id)
    assert runtime.complete(again).state == "succeeded"


def test_one_command_reconciles_at_a_time(works: Works):
    """The others are told so until its lease ends; then the exact command resumes, or another one starts."""
    works.clock.stop()
    operator = works.operator()
    work_id, _ = leave_unknown(works, works.runtime(), RECONCILED)
    assert operator.begin(work_id, p_command_id="ask").outcome == "started"
    assert operator.begin(work_id, p_command_id="ask").code == "ASDUR118"
    assert operator.begin(work_id, p_command_id="other").code == "ASDUR118"
    works.clock.pass_(MINUTE)
    assert operator.begin(work_id, p_command_id="ask").outcome == "resumed"
    works.clock.pass_(MINUTE)
    assert operator.begin(work_id, p_command_id="other").outcome == "started"


def test_proof_about_work_that_moved_is_discarded(works: Works):
    """A cancellation came between: the revision is another."""
    operator = works.operator()
    work_id, _ = leave_unknown(works, works.runtime(), RECONCILED)
    begun = operator.begin(work_id, p_command_id="ask")
    operator.cancel(work_id)
    before = works.row(work_id)
    for revision in (begun.revision, before["revision"]):
        found = operator.finish(work_id, "ask", revision, "applied", result=b"1")
        assert (found.outcome, found.code) == ("refused", "ASDUR112")
    assert works.row(work_id) == before


@pytest.mark.parametrize("safety", [KEYED, MANUAL, Safety.IDEMPOTENT])
def test_only_its_class_is_reconciled(works: Works, safety: Safety):
    """The others have their own ways."""
    work_id, _ = leave_unknown(works, works.runtime(), safety)
    assert works.operator().begin(work_id).code == "ASDUR116"


def test_applied_needs_the_result(works: Works):
    """And what was never begun cannot be finished."""
    operator = works.operator()
    work_id, revision = leave_unknown(works, works.runtime(), RECONCILED)
    assert operator.finish(work_id, "never", revision, "unknown").code == "ASDUR116"
    begun = operator.begin(work_id, p_command_id="ask")
    assert operator.finish(work_id, "ask", begun.revision, "applied").code == "ASDUR117"


# --- resolving


@pytest.mark.parametrize(
    ("evidence", "result", "state"),
    [("applied", b"1", "succeeded"), ("not_applied", None, "retry_wait")],
)
def test_an_operator_resolves_manual_work(works: Works, evidence: str, result, state: str):
    """And says why; the answer can be told again."""
    operator = works.operator()
    work_id, revision = leave_unknown(works, works.runtime(), MANUAL)
    for expected in ("recorded", "duplicate"):
        answer = operator.resolve(work_id, revision, evidence, result=result, p_command_id="decide")
        assert (answer.outcome if expected == "duplicate" else "recorded") == expected
        assert answer.state == state
    assert works.value("select reason from onecommit.operator_command") == "asked the provider"


@pytest.mark.parametrize(
    ("evidence", "result", "code"), [("unknown", None, "ASDUR117"), ("applied", None, "ASDUR117")]
)
def test_a_resolution_needs_proof(works: Works, evidence: str, result, code: str):
    work_id, revision = leave_unknown(works, works.runtime(), MANUAL)
    assert works.operator().resolve(work_id, revision, evidence, result=result).code == code


def test_canceled_work_of_a_safe_class_is_resolved(works: Works):
    """Not before it was canceled: it can be tried again instead."""
    operator = works.operator()
    work_id, revision = leave_unknown(works, works.runtime(), KEYED)
    assert operator.resolve(work_id, revision, "not_applied").code == "ASDUR116"
    canceled = operator.cancel(work_id)
    assert operator.retry_safe(work_id, canceled.revision).code == "ASDUR116"
    assert operator.resolve(work_id, revision, "not_applied").code == "ASDUR112"
    answer = operator.resolve(work_id, canceled.revision, "not_applied")
    assert answer.state == "canceled_before_effect"


def test_evidence_clears_one_permit_at_a_time(works: Works):
    """The newest first; the Work waits while another one is in the dark."""
    works.clock.stop()
    runtime, operator = works.runtime(), works.operator()
    claimed = runtime.take(works.accept(safety=KEYED))
    runtime.invoke(claimed)
    runtime.complete(claimed, "exception")
    works.clock.pass_(SECOND)
    [claimed] = runtime.claim(*works.due())
    runtime.invoke(claimed)
    runtime.complete(claimed, "ambiguous")
    revision = operator.cancel(claimed.work_id).revision
    first = operator.resolve(claimed.work_id, revision, "not_applied")
    assert first.state == SUSPENDED[KEYED]
    assert [outcome for _, outcome, _ in works.permits(claimed.work_id)] == [
        "ambiguous",
        "proven_no_effect",
    ]
    second = operator.resolve(claimed.work_id, first.revision, "not_applied")
    assert second.state == "canceled_before_effect"


@pytest.mark.parametrize(
    ("safety", "evidence", "state"),
    [
        (MANUAL, "applied", "succeeded_after_cancel_requested"),
        (MANUAL, "not_applied", "canceled_before_effect"),
        (RECONCILED, "applied", "succeeded_after_cancel_requested"),
        (RECONCILED, "not_applied", "canceled_before_effect"),
    ],
)
def test_evidence_is_recorded_in_a_disabled_scope(
    works: Works, safety: Safety, evidence: str, state: str
):
    """And reopens nothing; retrying and releasing are refused there."""
    operator = works.operator()
    work_id, _ = leave_unknown(works, works.runtime(), safety)
    operator.disable()
    revision = works.row(work_id)["revision"]
    assert operator.retry_safe(work_id, revision).code == "ASDUR107"
    assert operator.release(work_id, revision).code == "ASDUR107"
    result = b"1" if evidence == "applied" else None
    if safety is RECONCILED:
        begun = operator.begin(work_id, p_command_id="ask")
        answer = operator.finish(work_id, "ask", begun.revision, evidence, result=result)
    else:
        answer = operator.resolve(work_id, revision, evidence, result=result)
    assert answer.state == state


def test_proof_after_a_deadline_reopens_nothing(works: Works):
    """It did not happen, and it is too late: failed, with the deadline's code."""
    works.clock.stop()
    operator = works.operator()
    deadline = works.clock.now + MINUTE
    work_id, revision = leave_unknown(works, works.runtime(), MANUAL, deadline=deadline)
    works.clock.pass_(MINUTE)
    answer = operator.resolve(work_id, revision, "not_applied")
    assert (answer.state, answer.code) == ("failed", "ASDUR121")


# --- trying again


def test_an_operator_has_safe_work_tried_again(works: Works):
    """At once, with one attempt more than it had."""
    runtime, operator = works.runtime(), works.operator()
    work_id, revision = leave_unknown(works, runtime, KEYED, retry=WorkRetry(max_attempts=1))
    assert operator.retry_safe(work_id, revision - 1).code == "ASDUR112"
    answer = operator.retry_safe(work_id, revision, p_command_id="again")
    assert (answer.outcome, answer.state) == ("released", "retry_wait")
    assert operator.retry_safe(work_id, revision, p_command_id="again").outcome == "duplicate"
    assert works.row(work_id)["authorized_attempts"] == 1
    [claimed] = runtime.claim(*works.due())
    runtime.invoke(claimed)
    assert runtime.complete(claimed).state == "succeeded"


@pytest.mark.parametrize("safety", [RECONCILED, MANUAL])
def test_unsafe_work_is_not_tried_again_without_proof(works: Works, safety: Safety):
    work_id, revision = leave_unknown(works, works.runtime(), safety)
    assert works.operator().retry_safe(work_id, revision).code == "ASDUR117"


def test_work_whose_contract_was_unavailable_is_tried_again(works: Works):
    """Nothing happened: it may, in every class."""
    runtime, operator = works.runtime(), works.operator()
    for safety in Safety:
        claimed = runtime.take(works.accept(safety=safety))
        suspended = runtime.suspend(claimed)
        answer = operator.retry_safe(claimed.work_id, suspended.revision)
        assert answer.state == "retry_wait"


def test_no_operator_reopens_a_deadline_or_adds_a_slot(works: Works):
    """What is over is over."""
    works.clock.stop()
    operator, runtime = works.operator(), works.runtime()
    late, revision = leave_unknown(works, runtime, KEYED, deadline=works.clock.now + MINUTE)
    plan = WorkPlan(offsets=(timedelta(0),), circuit=2 * MINUTE)
    spent, spent_revision = leave_unknown(
        works, runtime, KEYED, plan=plan, retry=WorkRetry(max_attempts=1)
    )
    assert operator.retry_safe(spent, spent_revision).code == "ASDUR120"
    assert works.read("get_work", p_work_id=spent)[0].action == "cancel"
    works.clock.pass_(MINUTE)
    assert operator.retry_safe(late, revision).code == "ASDUR121"


def test_an_operator_may_grant_an_attempt_until_the_deadline(works: Works):
    """Also where the delay would have led past it, so that none follows by itself."""
    works.clock.stop()
    operator = works.operator()
    terms = {"deadline": works.clock.now + MINUTE, "retry": WorkRetry(initial_delay=2 * MINUTE)}
    late, revision = leave_unknown(works, works.runtime(), KEYED, **terms)
    in_time, its_revision = leave_unknown(works, works.runtime(), KEYED, **terms)
    assert works.row(late)["execution_admission_closed_at"] is None
    works.clock.pass_(MINUTE - MICROSECOND)
    assert operator.retry_safe(in_time, its_revision).outcome == "released"
    works.clock.pass_(MICROSECOND)
    assert operator.retry_safe(late, revision).code == "ASDUR121"


def test_what_can_be_done_is_what_would_not_be_refused(works: Works):
    """At a deadline that nobody has looked at yet, and after a last slot that could not be prepared."""
    works.clock.stop()
    runtime, operator = works.runtime(), works.operator()
    late, _ = leave_unknown(works, runtime, KEYED, deadline=works.clock.now + MINUTE)
    plan = WorkPlan(offsets=(timedelta(0),), circuit=2 * MINUTE)
    broken = runtime.take(works.accept(plan=plan, retry=WorkRetry(max_attempts=1)))
    revision = runtime.suspend(broken).revision
    assert works.read("get_work", p_work_id=late)[0].action == "retry_safe"
    works.clock.pass_(MINUTE)
    assert works.read("get_work", p_work_id=late)[0].action == "cancel"
    assert works.read("get_work", p_work_id=broken.work_id)[0].action == "cancel"
    assert operator.retry_safe(broken.work_id, revision).code == "ASDUR120"


# --- an older epoch


def stranded(works: Works, stage: str, safety: Safety = RECONCILED) -> tuple[int, Runtime]:
    """Work that got this far under the epoch before."""
    runtime = works.runtime()
    work = works.accept(safety=safety)
    if stage != "pending":
        claimed = runtime.take(work)
        if stage != "claimed":
            runtime.permit(claimed)
        if stage == "admitted":
            runtime.admit(claimed)
    return work.work_id, runtime


@pytest.mark.parametrize(
    ("stage", "released"),
    [
        ("pending", "pending"),
        ("claimed", "retry_wait"),
        ("permitted", "suspended_reconciliation_required"),
        ("admitted", "suspended_reconciliation_required"),
    ],
)
def test_work_of_an_older_epoch_is_released(works: Works, stage: str, released: str):
    """A permit may have lost its admission with the restore, so it is evidence too."""
    works.clock.stop()
    work_id, _ = stranded(works, stage)
    works.clock.pass_(timedelta(hours=1))
    with rotated(works):
        operator = works.operator()
        [moved] = works.runtime().claim(*works.due())
        assert (moved.outcome, moved.code) == ("moved", "runtime_epoch_mismatch")
        revision = works.row(work_id)["revision"]
        assert works.read("get_work", p_work_id=work_id)[0].action == "release"
        assert operator.retry_safe(work_id, revision).code == "ASDUR116"
        assert operator.begin(work_id).code == "ASDUR116"
        answer = operator.release(work_id, revision)
        assert (answer.outcome, answer.state) == ("released", released)
        if released.startswith("suspended"):
            begun = operator.begin(work_id, p_command_id="ask")
            assert operator.finish(
                work_id, "ask", begun.revision, "applied", result=b"1"
            ).state == ("succeeded")
        else:
            assert works.runtime().claim(*works.due())[0].outcome == "claimed"


@pytest.mark.parametrize("safety", Safety)
def test_what_an_operator_frees_after_a_rotation_goes_on_at_once(works: Works, safety: Safety):
    """The command was given under the new epoch, so the Work belongs to it; a release would add nothing."""
    works.clock.stop()
    work_id, revision = leave_unknown(works, works.runtime(), safety)
    with rotated(works):
        operator = works.operator()
        if safety is RECONCILED:
            begun = operator.begin(work_id, p_command_id="ask")
            freed = operator.finish(work_id, "ask", begun.revision, "not_applied")
        elif safety is MANUAL:
            freed = operator.resolve(work_id, revision, "not_applied")
        else:
            freed = operator.retry_safe(work_id, revision)
        assert freed.state == "retry_wait"
        works.clock.pass_(SECOND)
        [again] = works.runtime().claim(*works.due())
        assert (again.outcome, again.attempt) == ("claimed", 2)
        assert works.row(work_id)["epoch"] == works.store.epoch


@pytest.mark.parametrize("with_deadline", [False, True])
@pytest.mark.parametrize(("late", "state"), [(MICROSECOND, "retry_wait"), (0 * SECOND, "failed")])
def test_a_release_does_not_count_a_delay_that_it_does_not_wait_for(
    works: Works, late: timedelta, state: str, with_deadline: bool
):
    """The Work goes on at once, so only the time that is over counts: not the delay of its last attempt."""
    works.clock.stop()
    ends = works.clock.now + timedelta(hours=1)
    retry = WorkRetry(max_elapsed=timedelta(hours=2 if with_deadline else 1))
    terms = {"retry": retry} | ({"deadline": ends} if with_deadline else {})
    work_id = works.runtime().take(works.accept(safety=KEYED, **terms)).work_id
    works.clock.stop(ends - late)
    with rotated(works):
        works.runtime().claim(*works.due())
        answer = works.operator().release(work_id, works.row(work_id)["revision"])
        assert (answer.outcome, answer.state) == ("released", state)
        if state == "retry_wait":
            assert works.runtime().claim(*works.due())[0].outcome == "claimed"


def test_a_fence_of_the_older_epoch_commits_nothing(works: Works):
    """Not even an observation."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    with rotated(works):
        before = works.everything()
        assert runtime.complete(claimed).code == "ASDUR108"
        assert runtime.renew(claimed)[0].code == "ASDUR108"
        assert runtime.permit(claimed).code == "ASDUR108"
        assert works.everything() == before


def test_release_in_bulk_shows_first_and_records_each(works: Works):
    """Within the limit. The same command again answers what it did; the rest needs another one."""
    works.clock.stop()
    ids = [stranded(works, "pending")[0] for _ in range(3)]
    other, _ = stranded(works, "pending", KEYED)
    with rotated(works):
        operator = works.operator()
        for item in works.due():
            works.runtime().claim(item)
        shown = operator.release_all(preview=True)
        assert [row.work_id for row in shown] == [*ids, other]
        assert {row.outcome for row in shown} == {"preview"}
        done = operator.release_all(preview=False, limit=3)
        assert [(row.work_id, row.outcome, row.state) for row in done] == [
            (work_id, "released", "pending") for work_id in ids
        ]
        again = operator.release_all(preview=False, limit=3)
        assert {row.outcome for row in again} == {"duplicate"}
        assert [row[2:] for row in again] == [row[2:] for row in done]
        assert operator.release_all(preview=False, limit=2)[0].code == "ASDUR102"
        commands = works.store.observer.execute(
            "select command_id from onecommit.operator_command order by work_id nulls first"
        ).fetchall()
        assert commands == [("bulk",), *((f"bulk:{work_id}",) for work_id in ids)]
        rest = operator.release_all(preview=False, command="b", p_contract_name="billing.charge")
        assert [row.work_id for row in rest] == [other]
        assert operator.release_all(preview=False, command="c") == []
        assert operator.release_all(preview=False, p_scope_id="nobody")[0].code == "ASDUR113"


def test_every_command_refuses_another_epoch(works: Works):
    """By its code, and nothing is written; a purge, which returns no code, raises."""
    operator = works.operator()
    work_id, revision = leave_unknown(works, works.runtime(), MANUAL)
    before = works.everything()
    for epoch in (1, None, 0, works.store.epoch + 1):
        answers = [
            operator.cancel(work_id, p_epoch=epoch),
            operator.disable(p_epoch=epoch),
            operator.begin(work_id, p_epoch=epoch),
            operator.resolve(work_id, revision, "not_applied", p_epoch=epoch),
            operator.retry_safe(work_id, revision, p_epoch=epoch),
            operator.release(work_id, revision, p_epoch=epoch),
            operator.release_all(preview=False, p_epoch=epoch)[0],
        ]
        assert {answer.code for answer in answers} == {"ASDUR108"}
        assert {answer.outcome for answer in answers} == {"refused"}
        with pytest.raises(psycopg.Error) as refused:
            works.engine("work_retention").call(
                "purge_work",
                p_before=works.clock.now,
                p_limit=1,
                p_actor="ada",
                p_reason="r",
                p_epoch=epoch,
            )
        assert refused.value.sqlstate == "OC004"
    assert works.everything() == before
