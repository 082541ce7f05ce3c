"""What the store and the provider say about the Work when the demo is over, one against the other."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import psycopg

from onecommit.demo.journal import ProviderCall
from onecommit.domain.work import Safety, WorkState

_ITEMS = """
select w.work_id, w.scope_id, w.revision, w.contract_name, w.safety, w.state, w.action, w.activity_id::text as key,
       convert_from(r.result, 'utf8') as result,
       (select count(*) from onecommit.effect_permit p
        where p.work_id = w.work_id and p.invocation_admitted_at is not null) as admissions,
       h.lost, h.evidence, h.absences
from onecommit.list_work(null, null, false, null, 1000, null) w
left join onecommit.work_result r using (work_id)
cross join lateral (
    select count(*) filter (where event = 'lease_expired') as lost,
           count(*) filter (where event ~ '^(reconciled|resolved)_(not_)?applied$') as evidence,
           count(*) filter (where event ~ '^(reconciled|resolved)_not_applied$') as absences
    from onecommit.work_history where work_id = w.work_id) h
order by w.work_id
"""
WAITS_FOR = {Safety.RECONCILE_BEFORE_RETRY: "reconcile", Safety.MANUAL_RESOLUTION: "resolve"}
"""The action that a class may wait for; the others wait for nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """One item of Work as it stands in the store."""

    work_id: int
    scope_id: str
    revision: int
    contract_name: str
    safety: Safety
    state: WorkState
    action: str | None
    """What somebody has to do about it."""
    key: str
    """Its `activity_id`, which is the provider's key."""
    result: str | None
    """As JSON."""
    admissions: int
    """Calls of the provider that the store admitted."""
    lost: int
    """Attempts whose worker was lost."""
    evidence: int
    """Times that it was recorded what the provider had done or not."""
    absences: int
    """Of these, how often it had done nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLine:
    """One safety class, counted."""

    safety: Safety
    accepted: int
    succeeded: int
    waiting: int
    calls: int
    effects: int
    doubled: int
    """Effects beyond the first of their item."""
    lost: int
    """Items whose worker was killed after an admission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLedger:
    """Both sides, and the invariants that they must keep together."""

    orders: int
    items: tuple[WorkItem, ...]
    calls: tuple[ProviderCall, ...]

    @classmethod
    def read(cls, conn: psycopg.Connection[Any], calls: Iterable[ProviderCall]) -> Self:
        """Read the store in one statement, and so at one instant; nothing runs any more."""
        with conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            rows = cursor.execute(_ITEMS).fetchall()
            orders = cursor.execute("select count(*) as n from customer_order").fetchone()
        items = (
            WorkItem(**row | {"safety": Safety(row["safety"]), "state": WorkState(row["state"])})
            for row in rows
        )
        return cls(orders=orders["n"] if orders else 0, items=tuple(items), calls=tuple(calls))

    @property
    def lines(self) -> list[ClassLine]:
        """A line for each safety class."""
        return [self._line(safety) for safety in Safety]

    @property
    def waiting(self) -> list[WorkItem]:
        """What is suspended, by class."""
        waiting = [item for item in self.items if item.state.is_suspended]
        return sorted(waiting, key=lambda item: (item.contract_name, item.work_id))

    @property
    def violations(self) -> list[str]:
        """What does not hold, in words; empty when no effect was doubled and nothing was guessed."""
        return [promise for promise, kept in self._checks() if not kept]

    def _line(self, safety: Safety) -> ClassLine:
        items = [item for item in self.items if item.safety is safety]
        keys = {item.key for item in items}
        effects = [call.key for call in self.calls if call.effect and call.key in keys]
        return ClassLine(
            safety=safety,
            accepted=len(items),
            succeeded=sum(item.state is WorkState.SUCCEEDED for item in items),
            waiting=sum(item.state.is_suspended for item in items),
            calls=sum(call.key in keys for call in self.calls),
            effects=len(effects),
            doubled=len(effects) - len(set(effects)),
            lost=sum(item.lost > 0 for item in items),
        )

    def _checks(self) -> Iterator[tuple[str, bool]]:
        calls = Counter(call.key for call in self.calls)
        for line in self.lines:
            name = line.safety.name
            yield f"{name}: Work of each order is accepted", line.accepted == self.orders
            yield f"{name}: no effect is doubled", line.doubled == 0
            yield f"{name}: a worker was killed after an admission", line.lost > 0
            yield (
                f"{name}: all Work succeeded, or waits",
                line.accepted == line.succeeded + line.waiting,
            )
        yield (
            "the provider was called under an admitted permit only",
            calls.keys() <= {item.key for item in self.items}
            and all(calls[item.key] <= item.admissions for item in self.items),
        )
        yield (
            "Work waits for whom its class names, and for nobody else",
            all(item.action == WAITS_FOR.get(item.safety) and item.action for item in self.waiting),
        )
        yield (
            "where a repetition could double, nothing was called again without evidence",
            all(
                calls[item.key] <= 1 + item.absences
                for item in self.items
                if item.safety in WAITS_FOR
            ),
        )
        yield (
            "each result is the receipt of the provider's effect",
            all(
                self._has_receipt(item) for item in self.items if item.state is WorkState.SUCCEEDED
            ),
        )
        yield (
            "evidence has decided what was unknown",
            any(item.evidence for item in self.items if item.state is WorkState.SUCCEEDED),
        )

    def _has_receipt(self, item: WorkItem) -> bool:
        receipts = [call.receipt for call in self.calls if call.key == item.key and call.effect]
        return item.result is not None and json.loads(item.result) in receipts
