"""Requests whose leases, delays, slots and cutoffs lie so close together that random histories meet them."""

from datetime import datetime
from random import Random

from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkPlan, WorkRetry
from onecommit.domain.work_request import WorkRequest

from tests.works import SECOND

PLANS = (
    WorkPlan(offsets=(0 * SECOND,), circuit=8 * SECOND),
    WorkPlan(offsets=(0 * SECOND, 4 * SECOND), circuit=14 * SECOND),
    WorkPlan(offsets=(0 * SECOND, 4 * SECOND, 12 * SECOND), circuit=20 * SECOND),
)


def some_request(
    dice: Random, *, scope: str, contract: tuple[str, str], number: int, now: datetime
) -> WorkRequest:
    """Of every safety class and policy, with identities of their own."""
    plan = dice.choice((None, None, *PLANS))
    deadline = dice.choice((None, None, 6, 0, 10, 18, 40))
    due = None if plan else dice.choice((None, None, -2, 3))
    if due is not None and deadline is not None and due >= deadline:
        due = None
    retry = WorkRetry(
        max_attempts=len(plan.offsets) if plan else dice.randint(1, 3),
        max_elapsed=dice.choice((20, 40, 90)) * SECOND,
        initial_delay=3 * SECOND,
        max_delay=5 * SECOND,
        lease=10 * SECOND,
        renewal=2 * SECOND,
        max_lease=15 * SECOND,
    )
    return WorkRequest(
        scope=scope,
        command_id=f"c{number}",
        idempotency_key=f"k{number}",
        contract_name=contract[0],
        contract_version=contract[1],
        payload=b'{"cents":100}',
        safety=dice.choice(list(Safety)),
        retry=retry,
        plan=plan,
        deadline=None if deadline is None else now + deadline * SECOND,
        due_at=None if due is None else now + due * SECOND,
        priority=dice.randint(0, 1),
    )
