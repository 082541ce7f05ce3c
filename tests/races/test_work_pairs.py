"""Two operations on the same Work at once: whoever holds its row first decides, the other one is told the truth.

The first stays in its transaction until the second was seen to wait for it; a claim and a renewal do not wait, they skip.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from onecommit.domain.work_policy import WorkRetry

from tests.works import Runtime, Works

pytestmark = pytest.mark.pg

LEASE = WorkRetry().lease


def test_of_two_claims_one_wins(works: Works):
    """The other passes the locked row by, before and after the commit."""
    work, first, second = works.accept(), works.runtime(), works.runtime()
    first.engine.begin()
    first.take(work)
    assert second.claim((work.work_id, 1))[0].code == "ASDUR104"
    first.engine.commit()
    assert second.claim((work.work_id, 1))[0].code == "ASDUR104"
    assert works.row(work.work_id)["lease_owner"] == first.owner


def test_a_claim_that_rolls_back_leaves_the_work_to_others(works: Works):
    work, first, second = works.accept(), works.runtime(), works.runtime()
    first.engine.begin()
    first.take(work)
    first.engine.rollback()
    assert second.take(work).attempt == 1


def test_a_repeated_claim_waits_for_the_one_whose_answer_was_lost(works: Works):
    """It would pass by the rows that the first one still holds, and leave its lease to run out."""
    work, first = works.accept(), works.runtime()
    again = works.runtime()
    again.owner = first.owner
    first.engine.begin()
    first.claim((work.work_id, 1), request=7)
    claim = partial(again.claim, (work.work_id, 1), request=7)
    with works.store.blocked(again.engine, claim, by=first.engine) as answer:
        first.engine.commit()
    [row] = answer.result()
    assert (row.outcome, row.attempt) == ("claimed", 1)
    assert works.row(work.work_id)["attempt"] == 1


def test_a_claim_passes_by_a_lease_that_is_being_renewed(works: Works):
    """The renewal began while the lease lived; afterwards it lives on."""
    works.clock.stop()
    work, holder, other = works.accept(), works.runtime(), works.runtime()
    claimed = holder.take(work)
    holder.engine.begin()
    assert holder.renew(claimed)[0].outcome == "renewed"
    works.clock.pass_(LEASE)
    assert other.claim((work.work_id, 2))[0].code == "ASDUR104"
    holder.engine.commit()


def test_a_renewal_passes_by_a_row_that_is_being_recovered(works: Works):
    """It says busy, not stale: it does not know; asked again it is stale."""
    works.clock.stop()
    work, holder, other = works.accept(), works.runtime(), works.runtime()
    claimed = holder.take(work)
    works.clock.pass_(LEASE)
    other.engine.begin()
    assert other.claim((work.work_id, 2))[0].outcome == "moved"
    works.clock.pass_(-LEASE / 2)
    [row] = holder.renew(claimed)
    assert (row.outcome, row.code) == ("busy", None)
    other.engine.commit()
    assert holder.renew(claimed)[0].code == "ASDUR105"


def admit(runtime: Runtime, claimed: Any) -> Any:
    return runtime.admit(claimed)


def complete(runtime: Runtime, claimed: Any) -> Any:
    return runtime.complete(claimed)


@pytest.mark.parametrize("step", [admit, complete])
def test_recovery_first_then_the_holder_is_stale(works: Works, step: Callable[..., Any]):
    """It waits for the row, and finds its lease gone; no invocation after the permit was called proof of no effect."""
    works.clock.stop()
    work, holder, other = works.accept(), works.runtime(), works.runtime()
    claimed = holder.take(work)
    holder.permit(claimed)
    if step is complete:
        assert holder.admit(claimed).outcome == "admitted"
    works.clock.pass_(LEASE)
    other.engine.begin()
    assert other.claim(*works.due())[0].outcome == "moved"
    works.clock.pass_(-LEASE)
    with works.store.blocked(holder.engine, step, holder, claimed, by=other.engine) as answer:
        other.engine.commit()
    outcome = answer.result()
    assert outcome.code == "ASDUR105"
    assert outcome.outcome == ("refused" if step is admit else "quarantined")
    assert works.permits(work.work_id) == [
        (1, "proven_no_effect", False) if step is admit else (1, "ambiguous", True)
    ]
    assert works.row(work.work_id)["state"] == "retry_wait"


@pytest.mark.parametrize("step", [admit, complete])
def test_the_holder_first_then_recovery_passes_it_by(works: Works, step: Callable[..., Any]):
    """Afterwards an admission makes the effect unknown, and a completion leaves nothing to recover."""
    works.clock.stop()
    work, holder, other = works.accept(), works.runtime(), works.runtime()
    claimed = holder.take(work)
    holder.permit(claimed)
    if step is complete:
        holder.admit(claimed)
    holder.engine.begin()
    assert step(holder, claimed).outcome in {"admitted", "completed"}
    works.clock.pass_(LEASE)
    assert other.claim((work.work_id, 3))[0].code == "ASDUR104"
    holder.engine.commit()
    [row] = other.claim((work.work_id, 3))
    if step is admit:
        assert row.outcome == "moved"
        assert works.permits(work.work_id) == [(1, "ambiguous", True)]
    else:
        assert row.code == "ASDUR104"
        assert works.row(work.work_id)["state"] == "succeeded"


def test_two_admissions_of_one_permit(works: Works):
    """The second waits and is refused: the provider is called once."""
    first, second = works.runtime(), works.runtime()
    claimed = first.take(works.accept())
    first.permit(claimed)
    first.engine.begin()
    assert first.admit(claimed).outcome == "admitted"
    with works.store.blocked(
        second.engine, second.admit, claimed, p_owner=first.owner, by=first.engine
    ) as answer:
        first.engine.commit()
    assert (answer.result().outcome, answer.result().code) == ("refused", "ASDUR116")


def test_two_completions_of_one_attempt(works: Works):
    """The same one is told again; another one is kept aside."""
    first, second = works.runtime(), works.runtime()
    for result, outcome in ((b"{}", "replayed"), (b"other", "quarantined")):
        claimed = first.take(works.accept())
        first.invoke(claimed)
        first.engine.begin()
        first.complete(claimed)
        with works.store.blocked(
            second.engine,
            second.complete,
            claimed,
            result=result,
            p_owner=first.owner,
            by=first.engine,
        ) as answer:
            first.engine.commit()
        assert answer.result().outcome == outcome
