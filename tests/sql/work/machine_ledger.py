"""What holds of the rows themselves, whatever led to them, and whether they are what a model says."""

from collections import Counter
from datetime import datetime
from typing import Any

from tests.sql.work.model import Model
from tests.sql.work.model_item import TERMINAL, Item
from tests.stores import Store

ROWS = """
select jsonb_build_object(
    'scope', (select to_jsonb(s) from onecommit.scope s where s.scope_id = %(scope)s),
    'commands', (select coalesce(jsonb_agg(to_jsonb(c)), '[]') from onecommit.operator_command c where c.scope_id = %(scope)s),
    'works', (
        select coalesce(jsonb_agg(to_jsonb(w) || jsonb_build_object(
            'dispatch', (select to_jsonb(d) from onecommit.dispatch d where d.work_id = w.work_id),
            'permits', (select coalesce(jsonb_agg(to_jsonb(p) order by p.permit_id), '[]')
                        from onecommit.effect_permit p where p.work_id = w.work_id),
            'history', (select jsonb_agg(to_jsonb(h) - 'observation' order by h.history_id)
                        from onecommit.work_history h where h.work_id = w.work_id),
            'payload', exists (select from onecommit.work_payload a where a.work_id = w.work_id),
            'result', (select jsonb_build_object('bytes', encode(r.result, 'escape'))
                       from onecommit.work_result r where r.work_id = w.work_id))), '[]')
        from onecommit.work w where w.scope_id = %(scope)s))
"""
SET_ONCE = (
    "accepted_at",
    "activity_id",
    "fingerprint",
    "cancel_requested_at",
    "execution_admission_closed_at",
    "execution_admission_closed_reason",
    "execution_deadline_reached_at",
    "terminal_at",
    "purged_at",
)
KNOWN = ("known_succeeded", "proven_no_effect")
DISPATCHED = {
    "pending": "available",
    "retry_wait": "available",
    "leased": "leased",
    "effect_permitted": "leased",
    "cancel_pending": "leased",
} | dict.fromkeys(TERMINAL, "terminal")


def rows(store: Store, scope: str) -> dict[str, Any]:
    """Everything that the store knows about a scope."""
    return store.observer.execute(ROWS, {"scope": scope}).fetchone()[0]


class Ledger:
    """Remembers what must not change any more, and looks at the rows after each step."""

    def __init__(self) -> None:
        self._once: dict[tuple[Any, ...], Any] = {}
        self._before: dict[int, dict[str, Any]] = {}

    def check(self, seen: dict[str, Any], *, epoch: int) -> None:
        for work in seen["works"]:
            self._set_once(work)
            self._moves_forward(work)
            self._unknown_effects_stay_open(work, epoch)
            history_is_complete(work)
            permits_are_single(work)
            dispatch_agrees(work)
            self._before[work["work_id"]] = work
        for command in seen["commands"]:
            if command["state"] == "finished":
                key = ("command", command["command_id"])
                assert self._once.setdefault(key, command) == command, "a command was rewritten"

    def _set_once(self, work: dict[str, Any]) -> None:
        for name in SET_ONCE:
            self._keep(("work", work["work_id"], name), work[name])
        for permit in work["permits"]:
            for name in ("granted_at", "invocation_admitted_at", "lease_owner", "activity_id"):
                self._keep(("permit", permit["permit_id"], name), permit[name])
            known = permit["outcome"] if permit["outcome"] in KNOWN else None
            self._keep(("permit", permit["permit_id"], "outcome"), known)
        for event in work["history"]:
            self._keep(("history", event["history_id"]), event)
        if work["state"] in TERMINAL:
            fact = {k: v for k, v in work.items() if k not in UNTIL_PURGED}
            self._keep(("terminal", work["work_id"]), fact)

    def _keep(self, key: tuple[Any, ...], value: Any) -> None:
        """Once there, always the same."""
        if key in self._once:
            assert value == self._once[key], f"{key} was written twice"
        elif value is not None:
            self._once[key] = value

    def _moves_forward(self, work: dict[str, Any]) -> None:
        before = self._before.get(work["work_id"])
        if before is None:
            return
        for name in ("revision", "attempt", "lease_generation", "authorized_attempts", "epoch"):
            assert work[name] >= before[name], f"{name} fell"
        if work["state"] != before["state"]:
            assert work["revision"] > before["revision"], "a transition without a revision"
        assert work["history"][: len(before["history"])] == before["history"]

    def _unknown_effects_stay_open(self, work: dict[str, Any], epoch: int) -> None:
        if work["state"] in ("failed", "canceled_before_effect"):
            for permit in work["permits"]:
                admitted = permit["invocation_admitted_at"] is not None
                assert permit["outcome"] in (*KNOWN, "granted"), "an end with an unknown outcome"
                assert permit["outcome"] in KNOWN or not (admitted or permit["epoch"] != epoch), (
                    f"{work['state']} with an effect that nobody knows"
                )


UNTIL_PURGED = ("purged_at", "dispatch", "payload", "result", "history")


def history_is_complete(work: dict[str, Any]) -> None:
    """One row for each revision, each from where the last one led; the end of it is the Work as it stands."""
    moves = [event for event in work["history"] if event["to_state"] is not None]
    told: list[dict[str, Any]] = []
    for event in moves:
        if told and event["revision"] == told[-1]["revision"]:
            assert event["to_state"] == told[-1]["to_state"], "a move without a revision"
            continue
        if told and event["from_state"] is not None:
            assert event["from_state"] == told[-1]["to_state"], "the history has a gap"
        told.append(event)
    assert [event["revision"] for event in told] == list(range(1, work["revision"] + 1))
    assert told[-1]["to_state"] == work["state"]


def permits_are_single(work: dict[str, Any]) -> None:
    """At most one for an attempt and its lease, of the Work's own activity."""
    fences = Counter((p["attempt"], p["lease_generation"]) for p in work["permits"])
    assert not fences or max(fences.values()) == 1, "two permits for one attempt"
    assert {p["activity_id"] for p in work["permits"]} <= {work["activity_id"]}
    if work["state"] in ("effect_permitted", "cancel_pending"):
        assert (work["attempt"], work["lease_generation"]) in fences


def dispatch_agrees(work: dict[str, Any]) -> None:
    """Discovery would show the Work as it is; a purge takes the row, of what it must keep too."""
    dispatch = work["dispatch"]
    if dispatch is None:
        kept = work["state"] in TERMINAL and {p["outcome"] for p in work["permits"]} - set(KNOWN)
        assert work["purged_at"] is not None or kept
    else:
        assert work["purged_at"] is None
        assert dispatch["expected_revision"] == work["revision"]
        assert dispatch["state"] == DISPATCHED.get(work["state"], "suspended")


def compare(seen: dict[str, Any], model: Model) -> None:
    """Raise unless the rows are what the model says."""
    scope = seen["scope"]
    found = scope and (scope["generation"], scope["state"] == "disabled")
    assert (found or (0, False)) == (model.generation, model.disabled)
    assert {c["command_id"] for c in seen["commands"]} == set(model.commands)
    assert {work["work_id"] for work in seen["works"]} == set(model.items)
    for work in seen["works"]:
        assert as_found(work) == as_expected(model.items[work["work_id"]])


def as_expected(item: Item) -> dict[str, Any]:
    """The item in the words of the tables."""
    succeeded = item.state.startswith("succeeded")
    result = None if item.purged or item.result is None else item.result.decode()
    return {
        "state": item.state,
        "revision": item.revision,
        "attempt": item.attempt,
        "authorized_attempts": item.authorized,
        "lease_generation": item.lease_generation,
        "epoch": item.epoch,
        "code": item.code,
        "lease_owner": item.owner,
        "lease_started_at": item.lease_started_at,
        "lease_expires_at": item.lease_expires_at,
        "eligible_at": item.eligible_at,
        "cancel_requested_at": item.cancel_requested_at,
        "execution_admission_closed_at": item.closed_at,
        "execution_admission_closed_reason": item.closed_reason,
        "execution_deadline_reached_at": item.deadline_reached_at,
        "terminal_at": item.terminal_at,
        "purged": item.purged,
        "payload": not item.purged,
        "result": {"bytes": result} if succeeded else None,
        "moves": item.moves,
        "observed": len(item.observed),
        "discover_at": item.dispatch and item.dispatch[1],
        "permits": [
            (p.attempt, p.lease_generation, p.epoch, p.outcome, p.admitted_at) for p in item.permits
        ],
    }


TIMES = (
    "lease_started_at",
    "lease_expires_at",
    "eligible_at",
    "cancel_requested_at",
    "execution_admission_closed_at",
    "execution_deadline_reached_at",
    "terminal_at",
)
PLAIN = (
    "state",
    "revision",
    "attempt",
    "authorized_attempts",
    "lease_generation",
    "epoch",
    "code",
    "lease_owner",
    "execution_admission_closed_reason",
    "payload",
    "result",
)


def as_found(work: dict[str, Any]) -> dict[str, Any]:
    """The rows of an item in the words of the model."""
    dispatch = work["dispatch"]
    moves = {(e["revision"], e["to_state"]): None for e in work["history"] if e["to_state"]}
    suspended = dispatch is None or dispatch["state"] == "suspended"
    return (
        {name: work[name] for name in PLAIN}
        | {name: moment(work[name]) for name in TIMES}
        | {
            "purged": work["purged_at"] is not None,
            "moves": list(moves),
            "observed": sum(e["event"].startswith("quarantined_") for e in work["history"]),
            "discover_at": None if suspended else moment(dispatch["discover_at"]),
            "permits": [
                (
                    p["attempt"],
                    p["lease_generation"],
                    p["epoch"],
                    p["outcome"],
                    moment(p["invocation_admitted_at"]),
                )
                for p in work["permits"]
            ],
        }
    )


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
