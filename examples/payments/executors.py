"""Who calls the provider: the executor of each Work, and the reconciler that asks what became of a call."""

from onecommit import (
    AmbiguousExternalOutcome,
    Applied,
    FailedTerminal,
    NotApplied,
    RetryBeforeEffect,
    Succeeded,
    Unknown,
    WorkInquiry,
    WorkInvocation,
)

from payments.contracts import Charge, Charged, PaidOut, Payout, charge, payout
from payments.database import record_charged, record_paid_out
from payments.provider import NoAnswer, NothingDone, Refused, provider


@charge.exit_executor
async def run_charge(
    invocation: WorkInvocation, payload: Charge
) -> Succeeded[Charged] | RetryBeforeEffect | AmbiguousExternalOutcome | FailedTerminal:
    """Charge the order's card; the key is the same in every attempt."""
    try:
        charged = await provider.charge(
            key=invocation.activity_id, order=payload.order, cents=payload.cents
        )
    except NothingDone:
        return RetryBeforeEffect("provider_unreachable")
    except NoAnswer:
        return AmbiguousExternalOutcome("provider_silent")
    except Refused:
        return FailedTerminal("provider_refused")
    # If this fails the charge is sent again with the same key, and the provider repeats its answer.
    await record_charged(invocation.work_id, charged)
    return Succeeded(charged)


@payout.executor
async def run_payout(invocation: WorkInvocation, payload: Payout) -> PaidOut:
    """Transfer a shop's money. Whatever is raised here suspends the Work: the money may be on its way."""
    paid = await provider.pay_out(
        reference=invocation.activity_id, shop=invocation.scope, cents=payload.cents
    )
    await record_paid_out(invocation.work_id, paid)
    return paid


@payout.reconciler
async def find_payout(
    inquiry: WorkInquiry, payload: Payout
) -> Applied[PaidOut] | NotApplied | Unknown:
    """Look the transfer up; at the provider this changes nothing."""
    try:
        paid = await provider.find_payout(inquiry.activity_id)
    except (NothingDone, NoAnswer):
        return Unknown()
    if paid is None:
        return NotApplied()
    await record_paid_out(inquiry.work_id, paid)
    return Applied(paid)
