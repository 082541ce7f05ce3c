"""The back-off policy: exponential, jittered, bounded."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecommit import InvalidArgument, Retry

DAY_US = 24 * 3600 * 10**6
chances = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 2), (2, 4), (3, 8), (10, 1024), (18, 86400), (5000, 86400)]
)
def test_delays_double_up_to_a_day(attempt: int, seconds: int):
    assert Retry().delay_us(attempt, chance=0.0) == seconds * 10**6


@given(attempt=st.integers(1, 32767), chance=chances, jitter=st.floats(0, 1))
def test_jitter_only_shortens_and_by_its_share_at_most(attempt, chance, jitter):
    full = Retry(jitter=0).delay_us(attempt, chance=chance)
    delay = Retry(jitter=jitter).delay_us(attempt, chance=chance)
    assert full * (1 - jitter) - 1 <= delay <= full <= DAY_US


@given(first=st.timedeltas(timedelta(0), timedelta(days=400)), factor=st.floats(1, 1000))
def test_no_policy_waits_longer_than_its_bound(first, factor):
    assert 0 <= Retry(first=first, factor=factor).delay_us(100, chance=0.5) <= DAY_US


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": timedelta(seconds=-1)},
        {"first": 5},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"longest": timedelta(hours=25)},
        {"longest": None},
        {"jitter": 1.5},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(wrong):
    with pytest.raises(InvalidArgument) as caught:
        Retry(**wrong)
    assert caught.value.field in wrong
