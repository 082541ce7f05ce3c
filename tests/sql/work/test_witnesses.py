"""When admission closed and when the deadline was reached: two witnesses, each written once, of Work with a policy."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkPlan, WorkRetry

from tests.works import NOON, SECOND, Works

pytestmark = pytest.mark.pg

ZERO = timedelta(0)
LEASE = WorkRetry().lease


def witnesses(works: Works, work_id: int) -> tuple[str | None, float | None, float | None]:
    """Why and when admission closed, and when the deadline was seen to have come; in seconds from noon."""
    row = works.row(work_id)
    at = [row["execution_admission_closed_at"], row["execution_deadline_reached_at"]]
    closed_at, reached_at = (
        None if each is None else (datetime.fromisoformat(each) - NOON).total_seconds()
        for each in at
    )
    return row["execution_admission_closed_reason"], closed_at, reached_at


def planned(*offsets: timedelta, circuit: timedelta) -> dict[str, Any]:
    retry = WorkRetry(max_attempts=len(offsets))
    return {"plan": WorkPlan(offsets=offsets, circuit=circuit), "retry": retry}


# How the only attempt ends in the dark, after so many seconds; why admission is closed then.
EARLIER = {
    "circuit": (planned(ZERO, 15 * SECOND, circuit=16 * SECOND), 17),
    "attempts": (planned(ZERO, circuit=100 * SECOND), 1),
    "elapsed": ({"retry": WorkRetry(max_elapsed=10 * SECOND)}, 12),
}


@pytest.mark.parametrize("reason", EARLIER)
def test_the_deadline_is_witnessed_after_admission_closed_for_another_reason(
    works: Works, reason: str
):
    """The first reason and its time stay as they were seen; neither is written again later."""
    policy, ended = EARLIER[reason]
    works.clock.stop()
    runtime, operator = works.runtime(), works.operator()
    deadline = NOON + 20 * SECOND
    claimed = runtime.take(
        works.accept(safety=Safety.MANUAL_RESOLUTION, deadline=deadline, **policy)
    )
    runtime.invoke(claimed)
    works.clock.pass_(ended * SECOND)
    assert runtime.complete(claimed, "exception").code == "ASDUR106"
    assert witnesses(works, claimed.work_id) == (reason, ended, None)
    works.clock.stop(NOON + 20 * SECOND)
    assert operator.cancel(claimed.work_id).outcome == "suspended"
    assert witnesses(works, claimed.work_id) == (reason, ended, 20)
    works.clock.stop(NOON + 90 * SECOND)
    revision = works.row(claimed.work_id)["revision"]
    assert operator.resolve(claimed.work_id, revision, "not_applied").outcome == "recorded"
    assert witnesses(works, claimed.work_id) == (reason, ended, 20)


def test_a_clock_that_steps_back_reopens_no_deadline(works: Works):
    """It was once seen to have come: no attempt is granted before it any more."""
    works.clock.stop()
    runtime, operator = works.runtime(), works.operator()
    claimed = runtime.take(works.accept(safety=Safety.IDEMPOTENT, deadline=NOON + 20 * SECOND))
    runtime.invoke(claimed)
    works.clock.pass_(20 * SECOND)
    assert runtime.complete(claimed).outcome == "quarantined"
    assert works.runtime().claim(*works.due())[0].code == "ASDUR106"
    assert witnesses(works, claimed.work_id) == ("deadline", 20, 20)
    works.clock.stop(NOON + 10 * SECOND)
    revision = works.row(claimed.work_id)["revision"]
    assert operator.retry_safe(claimed.work_id, revision).code == "ASDUR121"


def test_disabling_a_scope_witnesses_what_is_over(works: Works):
    """Of each item by itself."""
    works.clock.stop()
    late = works.accept(deadline=NOON + 5 * SECOND).work_id
    spent = works.accept(**planned(ZERO, circuit=5 * SECOND)).work_id
    open_ = works.accept(deadline=NOON + 50 * SECOND).work_id
    works.clock.pass_(5 * SECOND)
    assert works.operator().disable().projected == 3
    assert witnesses(works, late) == ("deadline", 5, 5)
    assert witnesses(works, spent) == ("circuit", 5, None)
    assert witnesses(works, open_) == (None, None, None)


# Legacy Work that is over for good: by its attempts and by its time.
LEGACY = {
    "attempts": WorkRetry(max_attempts=1),
    "elapsed": WorkRetry(max_elapsed=5 * SECOND),
}


@pytest.mark.parametrize("reason", LEGACY)
@pytest.mark.parametrize("how", ["ended", "lost"])
def test_work_without_a_policy_has_no_witness(works: Works, reason: str, how: str):
    """Its code is the plain word; witnesses belong to policies."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept(retry=LEGACY[reason]))
    if how == "ended":
        works.clock.pass_(5 * SECOND)
        runtime.complete(claimed, "retry_before_effect")
    else:
        works.clock.pass_(LEASE)
        assert works.runtime().claim(*works.due())[0].outcome == "moved"
    row = works.row(claimed.work_id)
    assert (row["state"], row["code"]) == ("failed", reason)
    assert witnesses(works, claimed.work_id) == (None, None, None)


def test_witnesses_are_no_part_of_what_readers_see(works: Works):
    """They are facts of the store: no view and no answer has them."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept(**planned(ZERO, circuit=5 * SECOND)))
    answers = [claimed, runtime.permit(claimed)]
    works.clock.pass_(5 * SECOND)
    answers += [runtime.admit(claimed), *works.read("get_work", p_work_id=claimed.work_id)]
    answers += works.read("work_events", p_work_id=claimed.work_id)
    assert witnesses(works, claimed.work_id)[0] == "circuit"
    fields = {field for answer in answers for field in answer._fields}
    assert not {
        field for field in fields if field.startswith("execution_") or "closed_reason" in field
    }
