"""How often and until when Work is tried, to the microsecond, against values worked out here."""

import pytest

from tests.sql.work.rows import (
    ACCEPTED,
    HOUR_US,
    MINUTE_US,
    POPULATED,
    SECOND_US,
    after,
    ask,
    deadline_only,
    plan,
    work,
)
from tests.stores import Store

pytestmark = pytest.mark.pg

LARGEST = 2**63 - 1


# --- exponential-v1 ---


def exact_delay(attempt: int, initial: int, longest: int) -> int:
    """Of the text, in numbers that cannot overflow."""
    return min(longest, initial * 2 ** (attempt - 1))


@pytest.mark.parametrize(
    ("initial", "longest"),
    [
        (SECOND_US, 15 * MINUTE_US),
        (1, 1),
        (1, LARGEST),
        (3, LARGEST),
        (7, 1000),
        (LARGEST, LARGEST),
        (LARGEST - 1, LARGEST),
        (2**62, LARGEST),
        (2**62 + 1, LARGEST),
    ],
)
def test_the_delay_is_capped_before_it_can_overflow(
    shared_store: Store, initial: int, longest: int
):
    """After any attempt that there can be, and some more."""
    attempts = [*range(1, 131), 1000, 2**31 - 1]
    found = shared_store.observer.execute(
        "select onecommit.retry_delay_us(n, %s, %s) from unnest(%s::int[]) with ordinality a (n, o) order by o",
        (initial, longest, attempts),
    ).fetchall()
    expected = [exact_delay(min(attempt, 200), initial, longest) for attempt in attempts]
    assert [row[0] for row in found] == expected


def test_the_defaults_double_from_a_second_to_a_quarter_of_an_hour(shared_store: Store):
    """Written out."""
    seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    for attempt, delay in enumerate(seconds, start=1):
        found = ask(
            shared_store,
            "onecommit.retry_delay_us(%s, %s, %s)",
            attempt,
            SECOND_US,
            900 * SECOND_US,
        )
        assert found == delay * SECOND_US


# --- the next attempt ---


def next_attempt(store: Store, row: str, now_us: int) -> tuple[int | None, str | None]:
    """When, in microseconds from the acceptance, and what closed it."""
    at, closed = store.observer.execute(
        f"select (n).eligible_at, (n).closed from onecommit.next_attempt({POPULATED}, %s) n",
        (row, after(now_us)),
    ).fetchone()
    return at and round((at - ACCEPTED).total_seconds() * 1e6), closed


@pytest.mark.parametrize(("attempt", "delay"), [(0, 1), (1, 1), (2, 2), (3, 4), (7, 64)], ids=str)
def test_legacy_delays_count_from_the_failure(shared_store: Store, attempt: int, delay: int):
    """Work that never had an attempt waits as after its first."""
    found = next_attempt(shared_store, work(attempt=attempt), 5 * MINUTE_US)
    assert found == (5 * MINUTE_US + delay * SECOND_US, None)


@pytest.mark.parametrize(
    ("attempt", "authorized", "closed"),
    [(7, 0, None), (8, 0, "attempts"), (9, 0, "attempts"), (8, 1, None), (9, 1, "attempts")],
)
def test_attempts_run_out_unless_an_operator_grants_more(
    shared_store: Store, attempt: int, authorized: int, closed: str | None
):
    row = work(attempt=attempt, authorized_attempts=authorized)
    assert next_attempt(shared_store, row, 0)[1] == closed


@pytest.mark.parametrize(("microsecond", "closed"), [(-1, None), (0, "elapsed"), (1, "elapsed")])
def test_legacy_time_runs_out_where_the_next_attempt_would_begin(
    shared_store: Store, microsecond: int, closed: str | None
):
    """Not where the last one ended."""
    row = work(attempt=1, max_elapsed_us=HOUR_US)
    failed_at = HOUR_US - SECOND_US + microsecond
    found = next_attempt(shared_store, row, failed_at)
    assert found == (None if closed else failed_at + SECOND_US, closed)


PLAN = {"offsets": (0, 5 * MINUTE_US, 20 * MINUTE_US), "circuit_us": 30 * MINUTE_US}


def planned(**differences: object) -> str:
    return plan(*PLAN["offsets"], circuit_us=PLAN["circuit_us"], **differences)


@pytest.mark.parametrize("now_us", [0, MINUTE_US, 29 * MINUTE_US])
@pytest.mark.parametrize(("attempt", "slot"), [(0, 0), (1, 5), (2, 20)])
def test_slots_of_a_plan_count_from_the_acceptance(
    shared_store: Store, attempt: int, slot: int, now_us: int
):
    """An overdue slot stays where it was: it is neither moved nor left out."""
    found = next_attempt(shared_store, planned(attempt=attempt), now_us)
    assert found == (slot * MINUTE_US, None)


@pytest.mark.parametrize("authorized", [0, 5])
def test_a_plan_has_no_attempt_after_its_last_slot(shared_store: Store, authorized: int):
    """Nobody can grant one."""
    row = planned(attempt=3, authorized_attempts=authorized)
    assert next_attempt(shared_store, row, 0) == (None, "attempts")


def test_a_slot_at_or_after_the_deadline_does_not_come(shared_store: Store):
    """The slots are used up: the deadline is not reached yet."""
    for deadline_us, found in (
        (5 * MINUTE_US + 1, (5 * MINUTE_US, None)),
        (5 * MINUTE_US, (None, "attempts")),
        (5 * MINUTE_US - 1, (None, "attempts")),
    ):
        row = planned(attempt=1, deadline=after(deadline_us))
        assert next_attempt(shared_store, row, MINUTE_US) == found


def test_deadline_only_keeps_the_legacy_delay_and_ends_at_the_cutoff(shared_store: Store):
    """By whichever of the deadline and the longest time comes first; before it comes, no attempt fits any more."""
    for deadline_us, elapsed_us, found in (
        (3 * SECOND_US + 1, HOUR_US, (3 * SECOND_US, None)),
        (3 * SECOND_US, HOUR_US, (None, "attempts")),
        (HOUR_US, 3 * SECOND_US + 1, (3 * SECOND_US, None)),
        (HOUR_US, 3 * SECOND_US, (None, "attempts")),
        (SECOND_US + 1, HOUR_US, (None, "attempts")),
        (SECOND_US, HOUR_US, (None, "deadline")),
        (HOUR_US, SECOND_US, (None, "elapsed")),
        (SECOND_US, SECOND_US, (None, "deadline")),
    ):
        row = deadline_only(deadline_us, max_elapsed_us=elapsed_us, attempt=2)
        assert next_attempt(shared_store, row, SECOND_US) == found


# --- the cutoff ---

NONE = None


@pytest.mark.parametrize(
    ("circuit", "elapsed", "deadline", "cutoff", "reason"),
    [
        (10, 20, NONE, 10, "circuit"),
        (10, 10, NONE, 10, "circuit"),
        (10, 20, 30, 10, "circuit"),
        (10, 20, 10, 10, "deadline"),
        (10, 10, 10, 10, "deadline"),
        (10, 20, 5, 5, "deadline"),
        (NONE, 10, 20, 10, "elapsed"),
        (NONE, 20, 10, 10, "deadline"),
        (NONE, 10, 10, 10, "deadline"),
    ],
)
def test_the_cutoff_is_the_first_of_all_and_equality_is_closed(
    shared_store: Store,
    circuit: int | None,
    elapsed: int,
    deadline: int | None,
    cutoff: int,
    reason: str,
):
    """Of cutoffs that coincide the deadline is named."""
    minutes = {
        "circuit_us": circuit and circuit * MINUTE_US,
        "offsets_us": circuit and [0],
        "max_elapsed_us": elapsed * MINUTE_US,
        "deadline": deadline and after(deadline * MINUTE_US),
    }
    row = work(plan_version=1, **minutes)
    found = [closed(shared_store, row, cutoff * MINUTE_US + us) for us in (-1, 0, 1)]
    assert found == [None, reason, reason]
    at = ask(shared_store, f"onecommit.work_cutoff({POPULATED})", row)
    assert at.isoformat() == after(cutoff * MINUTE_US)


def closed(store: Store, row: str, now_us: int) -> str | None:
    return ask(store, f"onecommit.admission_closed({POPULATED}, %s)", row, after(now_us))


def test_without_a_policy_there_is_no_cutoff(shared_store: Store):
    row = work(max_elapsed_us=1)
    assert ask(shared_store, f"onecommit.work_cutoff({POPULATED})", row) is None
    assert closed(shared_store, row, 10 * HOUR_US) is None


@pytest.mark.parametrize("reason", ["deadline", "circuit", "elapsed", "attempts"])
def test_what_was_once_closed_stays_so_should_the_clock_step_back(shared_store: Store, reason: str):
    """And keeps the reason that was seen first, also after the deadline."""
    row = planned(
        deadline=after(HOUR_US),
        execution_admission_closed_at=after(MINUTE_US),
        execution_admission_closed_reason=reason,
    )
    assert closed(shared_store, row, -HOUR_US) == reason
    assert closed(shared_store, row, 2 * HOUR_US) == reason


def test_a_deadline_that_was_once_reached_stays_so(shared_store: Store):
    """By its own witness, apart from that of the admission."""
    row = deadline_only(HOUR_US, execution_deadline_reached_at=after(HOUR_US))
    assert closed(shared_store, row, 0) == "deadline"
    assert next_attempt(shared_store, row, 0) == (None, "deadline")
