"""The size and the rhythm of claims follow from what the last claims found."""

import pytest

from onecommit.domain.attempt import ClaimStatus
from onecommit.worker.jobs.claim_pace import ClaimPace
from onecommit.worker.jobs.claim_size import ClaimSize


def size(*, concurrency=20, rate=0.0, largest=2000):
    claims = ClaimSize(concurrency=concurrency, horizon=0.05, largest=largest)
    claims.observe(ended=0, now=0.0)
    claims.observe(ended=int(rate), now=1.0)
    return claims


def test_an_unknown_workload_claims_what_it_can_run_now():
    assert size().wanted(running=0, waiting=0) == 20
    assert size().wanted(running=15, waiting=0) == 5


def test_slow_jobs_are_not_hoarded():
    assert size(rate=20).wanted(running=20, waiting=0) == 1
    assert size(rate=20).wanted(running=20, waiting=1) == 0


def test_fast_jobs_are_claimed_ahead_up_to_the_largest_claim():
    assert size(rate=20_000).wanted(running=20, waiting=0) == 1000
    assert size(rate=1_000_000).wanted(running=0, waiting=0) == 2000


def test_the_stock_is_filled_up_only_when_half_of_it_is_gone():
    claims = size(rate=20_000)
    assert claims.wanted(running=20, waiting=600) == 0
    assert claims.wanted(running=20, waiting=500) == 500


def test_free_slots_without_stock_are_always_filled():
    assert size(rate=20_000).wanted(running=10, waiting=5) == 1005


def test_the_rate_is_forgotten_when_the_jobs_become_slow():
    claims = size(rate=20_000)
    claims.observe(ended=20_001, now=2.0)
    assert claims.rate == pytest.approx(1)


def test_more_is_claimed_at_once_without_asking_for_notices():
    pace = ClaimPace()
    assert pace.pause_after(ClaimStatus("more"), claimed=100, listening=True, poll=5) == 0
    assert not pace.sleep


def test_an_empty_queue_is_asked_to_notify_before_the_worker_sleeps():
    pace = ClaimPace()
    assert pace.pause_after(ClaimStatus("empty"), claimed=0, listening=True, poll=5) == 0
    assert pace.sleep
    assert pace.pause_after(ClaimStatus("empty"), claimed=0, listening=True, poll=5) == 5


def test_while_work_flows_the_worker_looks_again_by_itself():
    pace = ClaimPace()
    assert pace.pause_after(ClaimStatus("empty"), claimed=3, listening=True, poll=5) < 0.01
    assert not pace.sleep


def test_pending_numbers_are_looked_for_ever_less_often():
    pace = ClaimPace()
    pauses = [
        pace.pause_after(ClaimStatus("pending"), claimed=0, listening=True, poll=5)
        for _ in range(12)
    ]
    assert pauses[0] == 0.002
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1.0
    assert pace.sleep, "a new job must not wait behind an open transaction for a second"
    pace.woken()
    assert pace.pause_after(ClaimStatus("pending"), claimed=0, listening=True, poll=5) == 0.002


def test_a_busy_lane_is_tried_again_in_a_few_milliseconds():
    pace = ClaimPace()
    for _ in range(20):
        assert (
            0.001 < pace.pause_after(ClaimStatus("busy"), claimed=0, listening=True, poll=5) < 0.006
        )


def test_without_notices_an_idle_queue_is_polled():
    pace = ClaimPace()
    pauses = [
        pace.pause_after(ClaimStatus("empty"), claimed=0, listening=False, poll=1)
        for _ in range(15)
    ]
    assert pauses[-1] == 1
    assert not pace.sleep


@pytest.mark.parametrize("status", ["empty", "paused", "unknown_queue"])
def test_every_other_status_sleeps_until_a_notice(status):
    pace = ClaimPace()
    pace.pause_after(ClaimStatus(status), claimed=0, listening=True, poll=5)
    assert pace.pause_after(ClaimStatus(status), claimed=0, listening=True, poll=5) == 5
