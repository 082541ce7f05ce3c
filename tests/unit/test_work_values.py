"""The values of Work refuse what the protocol cannot hold, and name the field."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from onecommit.domain.work import WorkState
from onecommit.domain.work_exit import AmbiguousExternalOutcome, FailedTerminal, RetryBeforeEffect
from onecommit.domain.work_identifier import checked_code, checked_identifier, checked_version
from onecommit.domain.work_policy import WorkPlan, WorkRetry, absolute_time
from onecommit.errors import InvalidWork

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)
CHECKS = {checked_identifier: 200, checked_version: 100, checked_code: 120}


@pytest.mark.parametrize(("check", "longest"), CHECKS.items())
def test_a_name_is_at_most_so_long(check, longest):
    assert check("x" * longest, field="name") == "x" * longest
    with pytest.raises(InvalidWork, match="`name`"):
        check("x" * (longest + 1), field="name")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", ["", "a b", "a/b", "a\n", "ä", "a\x00", "a%", None, 1, b"a"])
def test_a_name_holds_nothing_else(check, name):
    with pytest.raises(InvalidWork) as caught:
        check(name, field="scope")
    assert caught.value.field == "scope"


@pytest.mark.parametrize("check", CHECKS)
def test_a_name_may_hold_the_whole_alphabet(check):
    assert check("azAZ09._:-", field="name") == "azAZ09._:-"


@pytest.mark.parametrize("code", ["ASDUR106", "asdur", "aSdUr.x"])
@pytest.mark.parametrize("make", [RetryBeforeEffect, FailedTerminal, AmbiguousExternalOutcome])
def test_a_code_of_the_application_is_never_one_of_ours(code, make):
    with pytest.raises(InvalidWork, match="reserved"):
        make(code)


@pytest.mark.parametrize("make", [RetryBeforeEffect, FailedTerminal, AmbiguousExternalOutcome])
def test_an_exit_carries_a_code_and_nothing_else(make):
    assert make("app.mail.quota").code == "app.mail.quota"
    with pytest.raises(InvalidWork):
        make("the provider said: no")
    with pytest.raises(TypeError):
        make("app.mail.quota", delay=SECOND)


def test_the_defaults_of_the_retry_policy_are_those_of_version_1():
    policy = WorkRetry()
    assert policy.algorithm == "exponential-v1"
    assert policy.max_attempts == 8
    assert policy.max_elapsed == timedelta(hours=24)
    assert (policy.initial_delay, policy.max_delay) == (SECOND, timedelta(minutes=15))
    assert (policy.lease, policy.renewal) == (timedelta(minutes=2), timedelta(seconds=30))
    assert policy.max_lease == timedelta(minutes=10)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("algorithm", {"algorithm": "linear-v1"}),
        ("max_attempts", {"max_attempts": 0}),
        ("max_attempts", {"max_attempts": 1001}),
        ("max_attempts", {"max_attempts": True}),
        ("max_elapsed", {"max_elapsed": timedelta(0)}),
        ("max_elapsed", {"max_elapsed": timedelta(days=3661)}),
        ("max_elapsed", {"max_elapsed": 5}),
        ("initial_delay", {"initial_delay": -SECOND}),
        ("max_delay", {"initial_delay": SECOND, "max_delay": SECOND - MICROSECOND}),
        ("renewal", {"renewal": SECOND, "lease": SECOND}),
        ("max_lease", {"lease": 40 * SECOND, "max_lease": 40 * SECOND - MICROSECOND}),
    ],
)
def test_a_retry_policy_out_of_bounds_names_the_field(field, values):
    with pytest.raises(InvalidWork) as caught:
        WorkRetry(**values)
    assert caught.value.field == field


@pytest.mark.parametrize("attempt", [1, 2, 3, 10, 11, 62, 63, 64, 1000])
def test_the_delay_doubles_up_to_the_longest(attempt):
    policy = WorkRetry(initial_delay=SECOND, max_delay=timedelta(minutes=15))
    assert policy.delay_us(attempt) == min(1_000_000 * 2 ** (attempt - 1), 900_000_000)


@pytest.mark.parametrize(
    ("field", "offsets", "circuit"),
    [
        ("offsets", [], SECOND),
        ("offsets", [SECOND], 2 * SECOND),
        ("offsets", [0 * SECOND, SECOND, SECOND], 2 * SECOND),
        ("offsets", [0 * SECOND, 2 * SECOND, SECOND], 3 * SECOND),
        ("offsets", [i * SECOND for i in range(257)], 300 * SECOND),
        ("offsets", [0 * SECOND, 1], 3 * SECOND),
        ("offsets", [0 * SECOND, -SECOND], 3 * SECOND),
        ("circuit", [0 * SECOND, SECOND], SECOND),
        ("circuit", [0 * SECOND], 0 * SECOND),
        ("circuit", [0 * SECOND], None),
    ],
)
def test_a_plan_out_of_bounds_names_the_field(field, offsets, circuit):
    with pytest.raises(InvalidWork) as caught:
        WorkPlan(offsets=offsets, circuit=circuit)
    assert caught.value.field == field


def test_a_plan_takes_256_slots_and_a_circuit_just_after_the_last():
    plan = WorkPlan(offsets=[i * SECOND for i in range(256)], circuit=255 * SECOND + MICROSECOND)
    assert isinstance(plan.offsets, tuple)


def test_an_absolute_time_is_the_same_moment_in_utc():
    moment = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert absolute_time(moment, field="deadline") == datetime(2030, 1, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("moment", [datetime(2030, 1, 1), timedelta(1), "2030-01-01"])  # noqa: DTZ001  refused for that
def test_a_relative_or_local_time_is_refused(moment):
    with pytest.raises(InvalidWork, match="`deadline`"):
        absolute_time(moment, field="deadline")


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime(1969, 12, 31)])  # noqa: DTZ001, DTZ901
@pytest.mark.parametrize("hours", [-12, 0, 14])
def test_a_time_that_not_every_client_can_read_is_refused(moment: datetime, hours: int):
    """In the session's time zone it would be in the year 0 or 10000."""
    with pytest.raises(InvalidWork, match="`deadline` is not in the years 1970 to 9998"):
        absolute_time(moment.replace(tzinfo=timezone(timedelta(hours=hours))), field="deadline")


class FineMoment(datetime):
    """Of a library that counts nanoseconds."""

    nanosecond = 1


class FineDuration(timedelta):
    nanoseconds = 999


def test_what_is_finer_than_a_microsecond_is_refused_and_not_rounded():
    """The database would round it, and a repeated request might be another one."""
    fine = FineDuration(seconds=1)
    refused = {
        "deadline": lambda: absolute_time(FineMoment(2030, 1, 1, tzinfo=UTC), field="deadline"),
        "lease": lambda: WorkRetry(lease=fine),
        "offsets": lambda: WorkPlan(offsets=(timedelta(0), fine), circuit=9 * SECOND),
        "circuit": lambda: WorkPlan(offsets=(timedelta(0),), circuit=fine),
    }
    for field, make in refused.items():
        with pytest.raises(InvalidWork, match="finer than a microsecond") as caught:
            make()
        assert caught.value.field == field
    FineDuration.nanoseconds = 0
    assert WorkRetry(initial_delay=fine).initial_delay == SECOND


def test_every_state_is_live_suspended_or_terminal():
    assert [state for state in WorkState if state.is_terminal and state.is_suspended] == []
    assert len([state for state in WorkState if state.is_terminal]) == 4
    assert len([state for state in WorkState if state.is_suspended]) == 4
