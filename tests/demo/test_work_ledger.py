"""The demo's ledger of Work: what it counts, and that each flaw breaks the promise that it should."""

from dataclasses import replace

import pytest

from onecommit.demo.journal import ProviderCall
from onecommit.demo.work_ledger import WorkLedger
from onecommit.domain.work import Safety, WorkState

from tests.demo.items import item

SUSPENDED = {
    Safety.RECONCILE_BEFORE_RETRY: (WorkState.SUSPENDED_RECONCILIATION_REQUIRED, "reconcile"),
    Safety.MANUAL_RESOLUTION: (WorkState.SUSPENDED_MANUAL_RESOLUTION, "resolve"),
}


def call(key: str, **changes) -> ProviderCall:
    defaults = {"operation": "charge", "order": 1, "cents": 5, "effect": True, "answered": True}
    return ProviderCall(**{"key": key, "receipt": f"receipt-{key}"} | defaults | changes)


def good() -> WorkLedger:
    """Two orders: the first of each class is done, the transfer by evidence; the second is lost with its worker."""
    items, calls = [], []
    for safety in Safety:
        first = item(safety, 1, evidence=int(safety is Safety.RECONCILE_BEFORE_RETRY))
        second = item(safety, 2, lost=1, admissions=2)
        calls += [call(first.key), call(second.key, answered=False)]
        if safety in SUSPENDED:
            state, action = SUSPENDED[safety]
            second = replace(second, state=state, action=action, result=None, admissions=1)
        else:
            calls.append(call(second.key, effect=False))
        items += [first, second]
    return WorkLedger(orders=2, items=tuple(items), calls=tuple(calls))


def changed(ledger: WorkLedger, index: int, **changes) -> WorkLedger:
    """With one item as it should not be."""
    items = list(ledger.items)
    items[index] = replace(items[index], **changes)
    return replace(ledger, items=tuple(items))


def called(ledger: WorkLedger, *calls: ProviderCall) -> WorkLedger:
    return replace(ledger, calls=ledger.calls + calls)


IDEMPOTENT, KEYED, RECONCILED, MANUAL = (2 * n + 1 for n in range(4))
"""Where the second item of each class stands."""


def test_a_ledger_that_holds_breaks_no_promise():
    assert good().violations == []


def test_a_line_counts_one_class():
    """Calls, effects and doubled effects are the provider's, the rest is the store's."""
    ledger = called(good(), call(good().items[KEYED].key))
    line = next(line for line in ledger.lines if line.safety is Safety.PROVIDER_KEYED)
    assert (line.accepted, line.succeeded, line.waiting, line.lost) == (2, 2, 0, 1)
    assert (line.calls, line.effects, line.doubled) == (4, 3, 1)


def test_what_waits_is_listed_by_contract():
    assert [item.action for item in good().waiting] == ["resolve", "reconcile"]


@pytest.mark.parametrize("safety", list(Safety))
def test_a_doubled_effect_breaks_the_promise_of_its_class(safety: Safety):
    """In every class, whatever the store believes."""
    key = next(item.key for item in good().items if item.safety is safety)
    broken = called(good(), call(key)).violations
    assert f"{safety.name}: no effect is doubled" in broken


@pytest.mark.parametrize(
    ("ledger", "promise"),
    [
        (
            replace(good(), orders=3),
            "Work of each order is accepted",
        ),
        (
            changed(good(), IDEMPOTENT, state=WorkState.RETRY_WAIT),
            "IDEMPOTENT: all Work succeeded, or waits",
        ),
        (
            changed(good(), MANUAL, state=WorkState.FAILED, action=None),
            "MANUAL_RESOLUTION: all Work succeeded, or waits",
        ),
        (
            changed(good(), KEYED, lost=0),
            "PROVIDER_KEYED: a worker was killed after an admission",
        ),
        (
            changed(good(), KEYED, admissions=1),
            "the provider was called under an admitted permit only",
        ),
        (
            called(good(), call("nobody")),
            "the provider was called under an admitted permit only",
        ),
        (
            changed(
                good(),
                KEYED,
                state=WorkState.SUSPENDED_AMBIGUOUS_EXTERNAL_OUTCOME,
                action="retry_safe",
            ),
            "Work waits for whom its class names",
        ),
        (
            changed(good(), RECONCILED, action=None),
            "Work waits for whom its class names",
        ),
        (
            called(
                changed(good(), MANUAL, admissions=2), call(good().items[MANUAL].key, effect=False)
            ),
            "nothing was called again without evidence",
        ),
        (
            changed(good(), RECONCILED - 1, evidence=0),
            "evidence has decided what was unknown",
        ),
        (
            changed(good(), KEYED, result='"receipt-of-another"'),
            "each result is the receipt of the provider's effect",
        ),
        (
            changed(good(), KEYED, result=None),
            "each result is the receipt of the provider's effect",
        ),
    ],
)
def test_each_flaw_breaks_its_promise(ledger: WorkLedger, promise: str):
    """And none is broken silently."""
    assert [broken for broken in ledger.violations if promise in broken]


def test_a_call_after_evidence_is_allowed():
    """A reconciler that proves absence lets the provider be called again, once each time."""
    second = good().items[RECONCILED]
    before = tuple(c for c in good().calls if c.key != second.key)
    lost, repeated = call(second.key, effect=False, receipt=None, answered=False), call(second.key)
    done = changed(
        good(),
        RECONCILED,
        state=WorkState.SUCCEEDED,
        action=None,
        result=f'"receipt-{second.key}"',
        admissions=2,
        evidence=1,
        absences=1,
    )
    assert replace(done, calls=(*before, lost, repeated)).violations == []
    guessed = changed(done, RECONCILED, absences=0)
    assert replace(guessed, calls=(*before, lost, repeated)).violations == [
        "where a repetition could double, nothing was called again without evidence"
    ]
