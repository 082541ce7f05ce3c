"""Work as the pure decisions see it: a row that was never stored."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.stores import Store

ACCEPTED = datetime(2030, 1, 1, tzinfo=UTC)
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
SAFETY = ("idempotent", "provider_keyed", "reconcile_before_retry", "manual_resolution")
SUSPENDED = {
    "idempotent": "suspended_ambiguous_external_outcome",
    "provider_keyed": "suspended_ambiguous_external_outcome",
    "reconcile_before_retry": "suspended_reconciliation_required",
    "manual_resolution": "suspended_manual_resolution",
}
TERMINAL = ("succeeded", "succeeded_after_cancel_requested", "failed", "canceled_before_effect")
WORK: dict[str, Any] = {
    "work_id": 1,
    "safety": "idempotent",
    "state": "pending",
    "accepted_at": ACCEPTED.isoformat(),
    "eligible_at": ACCEPTED.isoformat(),
    "max_attempts": 8,
    "authorized_attempts": 0,
    "max_elapsed_us": 24 * HOUR_US,
    "initial_delay_us": SECOND_US,
    "max_delay_us": 15 * MINUTE_US,
    "attempt": 0,
    "lease_generation": 0,
    "scope_generation": 1,
    "epoch": 1,
}


def after(microseconds: int) -> str:
    """A moment that long after the acceptance."""
    return (ACCEPTED + timedelta(microseconds=microseconds)).isoformat()


def work(**differences: Any) -> str:
    """A row of `work` as JSON."""
    return json.dumps(WORK | differences)


def plan(*offsets_us: int, circuit_us: int, **differences: Any) -> str:
    """Work with a fixed plan."""
    return work(plan_version=1, offsets_us=list(offsets_us), circuit_us=circuit_us, **differences)


def deadline_only(deadline_us: int, **differences: Any) -> str:
    """Work with a deadline and no plan."""
    return work(plan_version=1, deadline=after(deadline_us), **differences)


def ask(store: Store, expression: str, *values: Any) -> Any:
    """One value of a decision; a row of `work` is a `%s` where POPULATED says so."""
    return store.observer.execute(f"select {expression}", values).fetchone()[0]


POPULATED = "jsonb_populate_record(null::onecommit.work, %s::jsonb)"
