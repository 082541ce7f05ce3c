"""What operators do about Work and scopes; each command has an identity, an actor and a reason."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from onecommit.calls.call import Call, Routine, Rows, read_scalar
from onecommit.calls.literals import flag, integer, optional_bytes, optional_text
from onecommit.domain.arguments import INTEGER
from onecommit.domain.work import WorkState
from onecommit.domain.work_command import (
    BegunReconciliation,
    Command,
    CommandOutcome,
    CommandResult,
    EncodedEvidence,
    ReleasedWork,
    ScopeDisabling,
)
from onecommit.domain.work_policy import absolute_time, duration_us
from onecommit.errors import from_work_code

_COMMAND = {"p_scope_id": "text", "p_command_id": "text"}
_WORK = {**_COMMAND, "p_work_id": "bigint"}
_EVIDENCE = {
    "p_revision": "bigint",
    "p_evidence": "text",
    "p_result": "bytea",
    "p_result_codec": "text",
}
_WHO = {"p_actor": "text", "p_reason": "text", "p_epoch": "bigint"}
_RESULT = ("outcome", "code", "state", "revision")

CANCEL_WORK = Routine("cancel_work", {**_WORK, **_WHO}, _RESULT)
RETRY_SAFE = Routine("retry_safe", {**_WORK, "p_revision": "bigint", **_WHO}, _RESULT)
RELEASE_RECOVERY = Routine("release_recovery", {**_WORK, "p_revision": "bigint", **_WHO}, _RESULT)
RESOLVE_WORK = Routine(
    "resolve_work", {**_WORK, **_EVIDENCE, "p_proof_sha256": "bytea", **_WHO}, _RESULT
)
RECONCILE_BEGIN = Routine(
    "reconcile_begin",
    {**_WORK, "p_owner": "text", "p_lease_us": "bigint", **_WHO},
    (
        *_RESULT,
        "permit_id",
        "attempt",
        "activity_id",
        "contract_name",
        "contract_version",
        "codec",
        "payload",
    ),
)
RECONCILE_FINISH = Routine("reconcile_finish", {**_WORK, **_EVIDENCE, "p_epoch": "bigint"}, _RESULT)
RELEASE_RECOVERIES = Routine(
    "release_recoveries",
    {
        "p_scope_id": "text",
        "p_contract_name": "text",
        "p_contract_version": "text",
        "p_limit": "integer",
        "p_preview": "boolean",
        "p_command_id": "text",
        **_WHO,
    },
    (*_RESULT, "work_id"),
)
DISABLE_SCOPE = Routine(
    "disable_scope",
    {**_COMMAND, "p_generation": "bigint", **_WHO},
    ("outcome", "code", "generation", "projected"),
)
PURGE_WORK = Routine(
    "purge_work", {"p_before": "timestamptz", "p_limit": "integer", **_WHO}, ("purge_work",)
)

_REFUSALS = {
    "ASDUR102": "the command id stands for another command",
    "ASDUR107": "the scope is disabled",
    "ASDUR108": "the runtime epoch of this process is not the active one",
    "ASDUR110": "the Work has ended",
    "ASDUR111": "the scope holds no such Work",
    "ASDUR112": "the Work has moved on since it was looked at",
    "ASDUR113": "there is no such scope",
    "ASDUR114": "the scope is of another generation",
    "ASDUR116": "the state or the safety class of the Work does not allow it",
    "ASDUR117": "evidence about a call of the provider must come first, and a result with what was applied",
    "ASDUR118": "a reconciliation of this Work is going on",
    "ASDUR120": "the Work's policy admits no further attempt",
    "ASDUR121": "the Work's deadline has passed",
}
# Where the code's own remedy speaks to a worker.
_REMEDIES = {"ASDUR114": "Look at the scope again, and give the generation that it has now."}


def cancel_work(command: Command, work_id: int, *, epoch: int) -> Call[CommandResult]:
    """Cancel Work, as far as an effect of it is not unknown."""
    arguments = (*_work(command, work_id), *_who(command, epoch))
    return Call(CANCEL_WORK, arguments, _read_result)


def at_revision(
    routine: Routine, command: Command, work_id: int, *, revision: int, epoch: int
) -> Call[CommandResult]:
    """Try Work once more, or let Work of an older epoch go on: `routine` says which."""
    arguments = (*_work(command, work_id), _revision(revision), *_who(command, epoch))
    return Call(routine, arguments, _read_result)


def resolve_work(
    command: Command,
    work_id: int,
    evidence: EncodedEvidence,
    *,
    revision: int,
    proof_sha256: bytes | None,
    epoch: int,
) -> Call[CommandResult]:
    """Record what an operator found out."""
    arguments = (
        *_work(command, work_id),
        *_evidence(evidence, revision),
        optional_bytes(proof_sha256, field="proof_sha256"),
        *_who(command, epoch),
    )
    return Call(RESOLVE_WORK, arguments, _read_result)


def reconcile_begin(
    command: Command, work_id: int, *, owner: str, lease: timedelta, epoch: int
) -> Call[BegunReconciliation | CommandResult]:
    """Begin to reconcile Work; a command that has finished is answered with its result."""
    arguments = (
        *_work(command, work_id),
        owner,
        str(duration_us(lease, field="lease")),
        *_who(command, epoch),
    )
    return Call(RECONCILE_BEGIN, arguments, _read_begun)


def reconcile_finish(
    command: Command, work_id: int, evidence: EncodedEvidence, *, revision: int, epoch: int
) -> Call[CommandResult]:
    """Record what the begun reconciliation found out; repeating it is harmless."""
    arguments = (*_work(command, work_id), *_evidence(evidence, revision), str(epoch))
    return Call(RECONCILE_FINISH, arguments, _read_result)


def release_recoveries(
    command: Command,
    *,
    contract: str | None,
    version: str | None,
    limit: int,
    preview: bool,
    epoch: int,
) -> Call[list[ReleasedWork]]:
    """The same as `release_recovery` for many items of the scope, or only a look at them."""
    arguments = (
        command.scope,
        optional_text(contract, field="contract"),
        optional_text(version, field="version"),
        _limit(limit),
        flag(preview, field="preview"),
        command.command_id,
        *_who(command, epoch),
    )
    return Call(RELEASE_RECOVERIES, arguments, _read_released)


def disable_scope(command: Command, *, generation: int, epoch: int) -> Call[ScopeDisabling]:
    """Disable a scope for good."""
    arguments = (
        command.scope,
        command.command_id,
        integer(generation, field="generation"),
        *_who(command, epoch),
    )
    return Call(DISABLE_SCOPE, arguments, _read_disabling)


def purge_work(before: datetime, *, limit: int, actor: str, reason: str, epoch: int) -> Call[int]:
    """Forget the bytes of Work that has ended."""
    arguments = (
        absolute_time(before, field="before").isoformat(),
        _limit(limit),
        actor,
        reason,
        str(epoch),
    )
    return Call(PURGE_WORK, arguments, read_scalar)


def _work(command: Command, work_id: int) -> tuple[str, ...]:
    return command.scope, command.command_id, integer(work_id, field="work_id")


def _evidence(evidence: EncodedEvidence, revision: int) -> tuple[str | None, ...]:
    result = optional_bytes(evidence.result, field="result")
    return _revision(revision), evidence.evidence, result, evidence.codec


def _revision(revision: int) -> str:
    return integer(revision, field="revision")


def _limit(limit: int) -> str:
    return integer(limit, field="limit", bits=INTEGER)


def _who(command: Command, epoch: int) -> tuple[str, str, str]:
    return command.actor, command.reason, str(epoch)


def _read_result(rows: Rows) -> CommandResult:
    return _result(rows[0])


def _result(row: Sequence[Any]) -> CommandResult:
    outcome, code, state, revision = row
    _raise_refusal(outcome, code)
    return CommandResult(
        outcome=CommandOutcome(outcome), state=WorkState(state), code=code, revision=revision
    )


def _read_begun(rows: Rows) -> BegunReconciliation | CommandResult:
    [row] = rows
    if row[0] not in ("started", "resumed"):
        return _result(row[:4])
    revision, permit_id, attempt, activity_id, name, version, codec, payload = row[3:]
    return BegunReconciliation(
        permit_id=permit_id,
        attempt=attempt,
        activity_id=activity_id,
        contract=(name, version),
        codec=codec,
        payload=payload,
        revision=revision,
    )


def _read_released(rows: Rows) -> list[ReleasedWork]:
    released = []
    for outcome, code, state, revision, work_id in rows:
        _raise_refusal(outcome, code)
        released.append(
            ReleasedWork(
                work_id=work_id,
                outcome=CommandOutcome(outcome),
                state=WorkState(state),
                code=code,
                revision=revision,
            )
        )
    return released


def _read_disabling(rows: Rows) -> ScopeDisabling:
    outcome, code, generation, projected = rows[0]
    _raise_refusal(outcome, code)
    return ScopeDisabling(
        outcome=CommandOutcome(outcome), generation=generation, projected=projected
    )


def _raise_refusal(outcome: str, code: str | None) -> None:
    if outcome == "refused":
        message = _REFUSALS.get(str(code), "the command was refused")
        raise from_work_code(str(code), message, remedy=_REMEDIES.get(str(code)))
