"""Discovering, claiming and running Work: the calls of the worker."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from onecommit.calls.call import Call, Routine, Rows, read_nothing
from onecommit.calls.literals import integer_array, text_array
from onecommit.domain.identity import Epoch, WorkerId
from onecommit.domain.work import Safety, WorkFence
from onecommit.domain.work_attempt import (
    ClaimedWork,
    CompletionOutcome,
    MovedWork,
    Permission,
    Renewal,
    RenewalOutcome,
    WorkCandidate,
    WorkClaim,
    WorkCompletion,
    WorkEnd,
)
from onecommit.errors import from_work_code

DISCOVER_WORK_DISPATCH = Routine(
    "discover_work_dispatch",
    {"p_names": "text[]", "p_versions": "text[]", "p_limit": "integer"},
    ("scope_id", "work_id", "revision", "contract"),
)

CLAIM_WORK = Routine(
    "claim_work",
    {
        "p_scope_id": "text",
        "p_work_ids": "bigint[]",
        "p_revisions": "bigint[]",
        "p_owner": "bigint",
        "p_request": "bigint",
        "p_epoch": "bigint",
    },
    (
        "outcome",
        "code",
        "work_id",
        "activity_id",
        "command_id",
        "contract_name",
        "contract_version",
        "exit_aware",
        "codec",
        "payload",
        "safety",
        "attempt",
        "lease_generation",
        "scope_generation",
        "revision",
        "accepted_at",
        "deadline",
        "claimed_at",
        "lease_expires_at",
        "lease_us",
        "renewal_us",
    ),
)

RENEW_WORK = Routine(
    "renew_work",
    {
        "p_scope_id": "text",
        "p_work_ids": "bigint[]",
        "p_attempts": "integer[]",
        "p_lease_generations": "bigint[]",
        "p_scope_generations": "bigint[]",
        "p_owner": "bigint",
        "p_epoch": "bigint",
    },
    (
        "work_id",
        "outcome",
        "code",
        "lease_expires_at",
        "revision",
        "cancellation_requested",
        "at_limit",
    ),
)

_FENCE = {
    "p_scope_id": "text",
    "p_work_id": "bigint",
    "p_attempt": "integer",
    "p_lease_generation": "bigint",
    "p_scope_generation": "bigint",
    "p_owner": "bigint",
}
_EPOCH = {"p_epoch": "bigint"}

ACQUIRE_PERMIT = Routine("acquire_permit", {**_FENCE, **_EPOCH}, ("outcome", "code"))
ADMIT_INVOCATION = Routine("admit_invocation", {**_FENCE, **_EPOCH}, ("outcome", "code"))
COMPLETE_WORK = Routine(
    "complete_work",
    {
        **_FENCE,
        "p_event": "text",
        "p_code": "text",
        "p_result": "bytea",
        "p_result_codec": "text",
        **_EPOCH,
    },
    ("outcome", "code", "state", "revision", "eligible_at"),
)
SUSPEND_CONTRACT = Routine(
    "suspend_contract", {**_FENCE, **_EPOCH}, ("outcome", "code", "state", "revision")
)

MARK_WORK_SLEEPER = Routine("mark_work_sleeper", {"p_sleep": "boolean"}, ("mark_work_sleeper",))

_FENCED = "ASDUR108"


def discover_work(contracts: Sequence[tuple[str, str]], *, limit: int) -> Call[list[WorkCandidate]]:
    """At most `limit` due items of these contracts, the longest due first; nothing is locked."""
    arguments = (
        text_array([name for name, _ in contracts], field="contracts"),
        text_array([version for _, version in contracts], field="contracts"),
        str(limit),
    )
    return Call(DISCOVER_WORK_DISPATCH, arguments, partial(_read_candidates, tuple(contracts)))


def mark_work_sleeper(*, sleep: bool) -> Call[None]:
    """Ask for a notice of Work that is accepted and due, for ten seconds, or end that."""
    return Call(MARK_WORK_SLEEPER, ("true" if sleep else "false",), read_nothing)


def claim_work(
    scope: str, items: Sequence[WorkCandidate], *, owner: WorkerId, request: int, epoch: Epoch
) -> Call[WorkClaim]:
    """Claim items of one scope. The same owner and request again returns what it had claimed."""
    arguments = (
        scope,
        integer_array([item.work_id for item in items]),
        integer_array([item.revision for item in items]),
        str(owner),
        str(request),
        str(epoch),
    )
    return Call(CLAIM_WORK, arguments, partial(_read_claim, scope, owner, epoch))


def renew_work(fences: Sequence[WorkFence]) -> Call[list[Renewal]]:
    """Make leases of one scope, owner and epoch last longer; repeating it is harmless."""
    first = fences[0]
    arguments = (
        first.scope,
        integer_array([fence.work_id for fence in fences]),
        integer_array([fence.attempt for fence in fences]),
        integer_array([fence.lease_generation for fence in fences]),
        integer_array([fence.scope_generation for fence in fences]),
        str(first.owner),
        str(first.epoch),
    )
    return Call(RENEW_WORK, arguments, _read_renewals)


def acquire_permit(fence: WorkFence) -> Call[Permission]:
    """Get the permit of this attempt; asking again returns the same one."""
    return Call(ACQUIRE_PERMIT, _arguments(fence), _read_permission)


def admit_invocation(fence: WorkFence) -> Call[Permission]:
    """Admit the one invocation of the permit. Never repeated: a second asker is refused."""
    return Call(ADMIT_INVOCATION, _arguments(fence), _read_permission)


def complete_work(fence: WorkFence, end: WorkEnd) -> Call[WorkCompletion]:
    """Record how the attempt ended; repeating it after a lost reply is success."""
    *names, epoch = _arguments(fence)
    result = None if end.result is None else "\\x" + end.result.hex()
    arguments = (*names, end.event.value, end.code, result, end.codec, epoch)
    return Call(COMPLETE_WORK, arguments, _read_completion)


def suspend_contract(fence: WorkFence) -> Call[WorkCompletion]:
    """Let Work that cannot be prepared here wait for an operator; only before any permit."""
    return Call(SUSPEND_CONTRACT, _arguments(fence), _read_completion)


def _arguments(fence: WorkFence) -> tuple[str, ...]:
    return (
        fence.scope,
        str(fence.work_id),
        str(fence.attempt),
        str(fence.lease_generation),
        str(fence.scope_generation),
        str(fence.owner),
        str(fence.epoch),
    )


def _read_candidates(contracts: Sequence[tuple[str, str]], rows: Rows) -> list[WorkCandidate]:
    return [
        WorkCandidate(
            scope=scope, work_id=work_id, revision=revision, contract=contracts[contract - 1]
        )
        for scope, work_id, revision, contract in rows
    ]


def _read_claim(scope: str, owner: WorkerId, epoch: Epoch, rows: Rows) -> WorkClaim:
    claimed: list[ClaimedWork] = []
    moved: list[MovedWork] = []
    lost = 0
    for row in rows:
        outcome, code, work_id, _, _, name, version, _, _, _, _, attempt, *_ = row
        _refuse_fenced(code)
        match outcome:
            case "claimed":
                claimed.append(_claimed(scope, owner, epoch, row))
            case "moved":
                moved.append(MovedWork(work_id, f"{name}/{version}", attempt, code))
            case _:
                lost += 1
    return WorkClaim(claimed=claimed, moved=moved, lost=lost)


def _refuse_fenced(code: str | None) -> None:
    """The epoch was rotated: the process may not touch the store any more."""
    if code == _FENCED:
        raise from_work_code(code, "the runtime epoch of this process is not the active one")


def _claimed(scope: str, owner: WorkerId, epoch: Epoch, row: Sequence[Any]) -> ClaimedWork:
    _, _, work_id, activity_id, command_id, name, version, exit_aware, codec, payload, *rest = row
    safety, attempt, lease_generation, scope_generation, revision, *times = rest
    accepted_at, deadline, claimed_at, lease_expires_at, lease_us, renewal_us = times
    return ClaimedWork(
        fence=WorkFence(
            scope=scope,
            work_id=work_id,
            attempt=attempt,
            lease_generation=lease_generation,
            scope_generation=scope_generation,
            owner=owner,
            epoch=epoch,
        ),
        activity_id=activity_id,
        command_id=command_id,
        contract_name=name,
        contract_version=version,
        exit_aware=exit_aware,
        codec=codec,
        payload=payload,
        safety=Safety(safety),
        revision=revision,
        accepted_at=accepted_at,
        deadline=deadline,
        claimed_at=claimed_at,
        lease_expires_at=lease_expires_at,
        lease=timedelta(microseconds=lease_us),
        renewal=timedelta(microseconds=renewal_us),
    )


def _read_renewals(rows: Rows) -> list[Renewal]:
    return [
        Renewal(work_id, RenewalOutcome(outcome), *columns) for work_id, outcome, *columns in rows
    ]


def _read_permission(rows: Rows) -> Permission:
    [(outcome, code)] = rows
    _refuse_fenced(code)
    return Permission(outcome, code)


def _read_completion(rows: Rows) -> WorkCompletion:
    [(outcome, code, *columns)] = rows
    _refuse_fenced(code)
    return WorkCompletion(CompletionOutcome(outcome), code, *columns)
