"""A lease is renewed up to its limits; Work without a contract gives it back."""

from datetime import datetime

import pytest

from onecommit.domain.work_policy import WorkRetry

from tests.works import MICROSECOND, NOON, SECOND, Works

pytestmark = pytest.mark.pg

LEASE = WorkRetry().lease


def test_a_renewal_lasts_for_a_lease_and_tells_of_a_cancellation(works: Works):
    """It does not raise the revision."""
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    works.clock.pass_(SECOND)
    works.store.observer.execute("update onecommit.work set cancel_requested_at = now()")
    [row] = runtime.renew(claimed)
    assert (row.outcome, row.code, row.revision) == ("renewed", None, claimed.revision)
    assert row.lease_expires_at == NOON + SECOND + LEASE
    assert (row.cancellation_requested, row.at_limit) == (True, False)
    found = works.dispatch(claimed.work_id)
    assert datetime.fromisoformat(found["discover_at"]) == row.lease_expires_at


@pytest.mark.parametrize("limit", ["longest lease", "deadline"])
def test_a_lease_is_renewed_up_to_its_limit_and_says_so(works: Works, limit: str):
    works.clock.stop()
    runtime = works.runtime()
    if limit == "deadline":
        claimed, end = runtime.take(works.accept(deadline=NOON + 1.5 * LEASE)), NOON + 1.5 * LEASE
    else:
        retry = WorkRetry(max_lease=1.5 * LEASE)
        claimed, end = runtime.take(works.accept(retry=retry)), NOON + 1.5 * LEASE
    for step, expiry, at_limit in (
        (LEASE / 4, NOON + 1.25 * LEASE, False),
        (LEASE / 4 - MICROSECOND, end - MICROSECOND, False),
        (MICROSECOND, end, True),
        (LEASE / 2, end, True),
    ):
        works.clock.pass_(step)
        [row] = runtime.renew(claimed)
        assert (row.outcome, row.lease_expires_at, row.at_limit) == ("renewed", expiry, at_limit)
    works.clock.stop(end)
    assert runtime.renew(claimed)[0].code == "ASDUR105"


def test_a_renewal_shortens_no_lease_when_the_clock_steps_back(works: Works):
    works.clock.stop()
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    works.clock.pass_(-10 * SECOND)
    assert runtime.renew(claimed)[0].lease_expires_at == claimed.lease_expires_at


def test_renewals_of_many_are_answered_each_in_order(works: Works):
    runtime, other = works.runtime(), works.runtime()
    mine, theirs = runtime.take(works.accept()), other.take(works.accept())
    rows = runtime.renew(theirs, mine)
    assert [(r.work_id, r.outcome) for r in rows] == [
        (theirs.work_id, "stale"),
        (mine.work_id, "renewed"),
    ]


def test_work_without_a_contract_waits_for_an_operator(works: Works):
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    row = runtime.suspend(claimed)
    assert (row.outcome, row.code, row.revision) == ("suspended", "ASDUR109", 3)
    assert row.state == "suspended_contract_unavailable"
    assert works.due() == []
    assert runtime.suspend(claimed).code == "ASDUR105"


def test_a_contract_is_not_missing_after_a_permit(works: Works):
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.permit(claimed)
    before = works.everything()
    row = runtime.suspend(claimed)
    assert (row.outcome, row.code, row.state) == ("refused", "ASDUR116", "effect_permitted")
    assert works.everything() == before
