"""Every cell of the decisions about Work, against tables that are written out here.

A grid has a row for each event and a column for each situation. Its letters: S succeeded, X succeeded after a request
to cancel, F failed, C canceled before effect, W waits for the next attempt, A suspended by the safety class, R waits
where the class is safe to repeat and is suspended where it is not, . nothing.
"""

from itertools import product

import pytest

from tests.sql.work.rows import (
    POPULATED,
    SAFETY,
    SUSPENDED,
    TERMINAL,
    after,
    ask,
    deadline_only,
    plan,
    work,
)
from tests.stores import Store

pytestmark = pytest.mark.pg

# Situations: nothing, no attempt is left, a cancel was requested, both; without and with an unresolved permit.
ENDS = """
succeeded            S S X X   S S X X
retry_before_effect  W F C C   R A A A
exception            W F C C   R A A A
lease_expired        W F C C   R A A A
failed_terminal      F F C C   A A A A
ambiguous            W F C C   A A A A
compatibility        W F C C   A A A A
cancel               C C C C   A A A A
disable              C C C C   A A A A
cutoff               F F C C   A A A A
"""
STATES = {
    "S": "succeeded",
    "X": "succeeded_after_cancel_requested",
    "F": "failed",
    "C": "canceled_before_effect",
    "W": "retry_wait",
}
CLOSED = ("deadline", "circuit", "elapsed", "attempts")
SAFE = ("idempotent", "provider_keyed")


# A permit of this epoch without an admission, with one; of another epoch without, with.
MAY_HAVE_HAD_EFFECT = """
granted          n y y y
ambiguous        y y y y
known_succeeded  n n n n
proven_no_effect n n n n
"""


def grid(text: str) -> dict[str, list[str]]:
    rows = (line.split() for line in text.strip().splitlines())
    return {event: cells for event, *cells in rows}


PERMIT = """
insert into onecommit.effect_permit (
    work_id, scope_id, attempt, lease_generation, scope_generation, epoch, lease_owner, activity_id, outcome, granted_at,
    invocation_admitted_at)
values (1, 'tenant-1', 1, 1, 1, %s, 1, gen_random_uuid(), %s, now(), %s)
"""


@pytest.mark.parametrize("attempt", [1, 2], ids=["current", "earlier"])
@pytest.mark.parametrize("outcome", grid(MAY_HAVE_HAD_EFFECT))
def test_which_permits_may_have_had_an_effect(store: Store, outcome: str, attempt: int):
    """Those of which nothing is known, and open ones that were admitted, or may have been before a promotion.

    Whoever asks is told the same.
    """
    item = work(epoch=2, attempt=attempt, lease_generation=attempt)
    situations = [(epoch, admitted) for epoch in (2, 1) for admitted in (None, after(0))]
    for (epoch, admitted), cell in zip(situations, grid(MAY_HAVE_HAD_EFFECT)[outcome], strict=True):
        expected = cell == "y"
        store.observer.execute("delete from onecommit.effect_permit")
        store.observer.execute(PERMIT, (epoch, outcome, admitted))
        sight = f"onecommit.see_permits({POPULATED}, 2)"
        is_current = attempt == 1 and outcome == "granted"
        assert ask(store, "(" + sight + ").admitted", item) == (expected and is_current)
        assert ask(store, "(" + sight + ").others", item) == (expected and not is_current)
        assert (ask(store, "(" + sight + ").granted", item) is not None) == is_current
        assert ask(store, "onecommit.has_unresolved(1, 2)") == expected
        assert ask(store, "onecommit.count_unresolved(1, 2)") == expected
        newest = "(onecommit.unresolved_permit(1, 2)).permit_id is not null"
        assert ask(store, newest) == expected


def expected_end(letter: str, safety: str) -> str:
    if letter == "R":
        letter = "W" if safety in SAFE else "A"
    return SUSPENDED[safety] if letter == "A" else STATES[letter]


def end_cells() -> list[tuple[str, bool, bool, str | None, str]]:
    """Event, unresolved, cancelled, closed, letter; of the reasons to be closed each one."""
    found = []
    for event, letters in grid(ENDS).items():
        situations = product((False, True), (False, True), (False, True))
        for (unresolved, cancelled, closed), letter in zip(situations, letters, strict=True):
            reasons = CLOSED if closed else (None,)
            found += [(event, unresolved, cancelled, reason, letter) for reason in reasons]
    return found


@pytest.mark.parametrize("safety", SAFETY)
def test_every_end_of_an_attempt(shared_store: Store, safety: str):
    """Event by situation, for this safety class."""
    wrong = []
    for event, unresolved, cancelled, closed, letter in end_cells():
        state = ask(
            shared_store,
            "onecommit.decide_end(%s, %s, %s, %s, %s)",
            safety,
            event,
            unresolved,
            cancelled,
            closed,
        )
        if state != expected_end(letter, safety):
            wrong.append((event, unresolved, cancelled, closed, state, letter))
    assert not wrong
    assert len(end_cells()) == 10 * 2 * 2 * 5


def test_no_unknown_outcome_is_a_failure_or_a_cancellation(shared_store: Store):
    """The sentence of the text itself, over all cells."""
    for safety, (event, unresolved, cancelled, closed, _) in product(SAFETY, end_cells()):
        if unresolved:
            state = ask(
                shared_store,
                "onecommit.decide_end(%s, %s, true, %s, %s)",
                safety,
                event,
                cancelled,
                closed,
            )
            assert state not in {"failed", "canceled_before_effect"}


def test_where_each_class_waits_for_evidence(shared_store: Store):
    """The state says what an operator has to do."""
    for safety, state in SUSPENDED.items():
        assert ask(shared_store, "onecommit.suspended_state(%s)", safety) == state


# State that Work stands in: its code without a closed admission, and by what closed it (deadline, circuit, elapsed,
# attempts), first with an execution policy and then without. own: what the application said, or nothing. why: the word.
CODES = """
suspended_ambiguous_external_outcome  106  106 106 106 106  106 106 106 106
suspended_reconciliation_required     106  106 106 106 106  106 106 106 106
suspended_manual_resolution           106  106 106 106 106  106 106 106 106
failed                                own  121 120 120 120  121 why why why
retry_wait                            own  own own own own  own own own own
succeeded                             own  own own own own  own own own own
succeeded_after_cancel_requested      own  own own own own  own own own own
canceled_before_effect                own  own own own own  own own own own
"""


def expected_code(cell: str, closed: str | None, own: str | None) -> str | None:
    if cell == "own":
        return own
    return (own or closed) if cell == "why" else f"ASDUR{cell}"


@pytest.mark.parametrize("own", [None, "app.busy"])
def test_every_code(shared_store: Store, own: str | None):
    """106 outranks the deadline, and the deadline the rest of a policy; then the application's own."""
    columns = [(None, True), *product(CLOSED, (True,)), *product(CLOSED, (False,))]
    for state, cells in grid(CODES).items():
        for (closed, planned), cell in zip(columns, cells, strict=True):
            code = ask(
                shared_store, "onecommit.end_code(%s, %s, %s, %s)", state, closed, planned, own
            )
            assert code == expected_code(cell, closed, own), (state, closed, planned)
        assert ask(shared_store, "onecommit.end_code(%s, null, false, %s)", state, own) == (
            expected_code(cells[0], None, own)
        )


FENCE = {
    "attempt": 3,
    "lease_generation": 5,
    "scope_generation": 2,
    "lease_owner": 7,
    "epoch": 4,
}
HELD = FENCE | {"state": "leased", "lease_expires_at": after(1000)}


def fence_code(store: Store, row: str, *, now_us: int = 0, **differences: int | None) -> str | None:
    fence = FENCE | differences
    return ask(
        store,
        f"onecommit.fence_code({POPULATED}, %s::int, %s::bigint, %s::bigint, %s::bigint, %s::bigint, %s)",
        row,
        *fence.values(),
        after(now_us),
    )


def test_the_exact_fence_holds(shared_store: Store):
    assert fence_code(shared_store, work(**HELD)) is None


@pytest.mark.parametrize("field", FENCE)
def test_each_part_of_the_fence_counts(shared_store: Store, field: str):
    """One below, one above, and unknown."""
    for value in (FENCE[field] - 1, FENCE[field] + 1, None):
        assert fence_code(shared_store, work(**HELD), **{field: value}) == "ASDUR105"


@pytest.mark.parametrize(("microsecond", "code"), [(-1, None), (0, "ASDUR105"), (1, "ASDUR105")])
def test_a_lease_ends_at_its_very_expiry(shared_store: Store, microsecond: int, code: str | None):
    """At it, it is over, though nobody else has claimed."""
    assert fence_code(shared_store, work(**HELD), now_us=1000 + microsecond) == code


def test_a_revision_is_no_part_of_the_fence(shared_store: Store):
    """A cancellation raises it, and the renewal that delivers the cancellation must not be stale."""
    assert fence_code(shared_store, work(**HELD, revision=99)) is None


@pytest.mark.parametrize("state", TERMINAL)
def test_terminal_work_says_so_before_it_calls_a_fence_stale(shared_store: Store, state: str):
    terminal = work(**FENCE | {"lease_owner": None}, state=state, terminal_at=after(0))
    assert fence_code(shared_store, terminal) == "ASDUR110"
    assert fence_code(shared_store, terminal, attempt=1) == "ASDUR110"


def test_work_that_is_not_there_is_not_found(shared_store: Store):
    assert fence_code(shared_store, "{}") == "ASDUR111"


def test_work_without_a_lease_has_no_fence(shared_store: Store):
    """Also for a caller that names no owner."""
    waiting = work(**FENCE | {"lease_owner": None}, state="retry_wait")
    for owner in (FENCE["lease_owner"], None):
        assert fence_code(shared_store, waiting, lease_owner=owner) == "ASDUR105"


# States by situation: due, not yet due, closed, closed and not yet due; then of an older epoch: due, not yet due.
VERDICTS = """
pending     claim lost cutoff cutoff  epoch epoch
retry_wait  claim lost cutoff cutoff  epoch epoch
"""
# Leased states by situation: live, ended; then of an older epoch: live, ended.
LEASED_VERDICTS = """
leased            lost expired  lost epoch
effect_permitted  lost expired  lost epoch
cancel_pending    lost expired  lost epoch
"""
NEVER = (*TERMINAL, *sorted(set(SUSPENDED.values())), "suspended_contract_unavailable")


def verdict(store: Store, row: str, *, now_us: int, epoch: int = 4) -> str:
    return ask(store, f"onecommit.claim_verdict({POPULATED}, %s, %s)", row, epoch, after(now_us))


@pytest.mark.parametrize("state", grid(VERDICTS))
def test_a_claim_of_waiting_work(shared_store: Store, state: str):
    due, later, closed = 100, 2000, 1000
    cells = [
        verdict(
            shared_store,
            deadline_only(deadline, state=state, epoch=epoch, eligible_at=after(eligible)),
            now_us=500,
        )
        for epoch, eligible, deadline in (
            (4, due, closed),
            (4, later, closed),
            (4, due, 500),
            (4, later, 500),
            (3, due, closed),
            (3, later, closed),
        )
    ]
    assert cells == grid(VERDICTS)[state]


@pytest.mark.parametrize("state", grid(LEASED_VERDICTS))
def test_a_claim_of_leased_work(shared_store: Store, state: str):
    """A live lease of an older epoch is left to its end, too: its holder may be busy at the provider."""
    cells = [
        verdict(
            shared_store,
            work(state=state, lease_owner=7, lease_expires_at=after(500), epoch=epoch),
            now_us=now,
        )
        for epoch, now in ((4, 499), (4, 500), (3, 499), (3, 500))
    ]
    assert cells == grid(LEASED_VERDICTS)[state]


@pytest.mark.parametrize("state", NEVER)
def test_a_claim_leaves_alone_what_waits_for_a_person_or_is_over(shared_store: Store, state: str):
    for epoch in (3, 4):
        assert verdict(shared_store, work(state=state, epoch=epoch), now_us=1) == "lost"


@pytest.mark.parametrize(("microsecond", "found"), [(-1, "lost"), (0, "claim"), (1, "claim")])
def test_work_can_be_claimed_from_the_moment_it_is_due(
    shared_store: Store, microsecond: int, found: str
):
    row = work(epoch=4, eligible_at=after(1000))
    assert verdict(shared_store, row, now_us=1000 + microsecond) == found


@pytest.mark.parametrize(("microsecond", "found"), [(-1, "claim"), (0, "cutoff"), (1, "cutoff")])
def test_work_can_be_claimed_until_its_cutoff_and_not_at_it(
    shared_store: Store, microsecond: int, found: str
):
    for row in (
        plan(0, circuit_us=1000, epoch=4),
        deadline_only(1000, epoch=4),
        deadline_only(9000, epoch=4, max_elapsed_us=1000),
    ):
        assert verdict(shared_store, row, now_us=1000 + microsecond) == found


def test_without_a_policy_a_first_attempt_is_never_too_late(shared_store: Store):
    """The longest time of exponential-v1 is about repeating."""
    assert verdict(shared_store, work(epoch=4, max_elapsed_us=1000), now_us=10**9) == "claim"
