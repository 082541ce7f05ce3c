"""Accepting Work."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from onecommit.calls.call import Call, Routine, Rows
from onecommit.calls.literals import boolean, integer_array
from onecommit.domain.work import Acceptance, Accepted, Duplicate, WorkId
from onecommit.domain.work_policy import WorkPlan, WorkRetry
from onecommit.domain.work_request import WorkRequest
from onecommit.errors import from_work_code

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

ACCEPT_WORK = Routine(
    "accept_work",
    {
        "p_scope_id": "text",
        "p_command_id": "text",
        "p_idempotency_key": "text",
        "p_contract_name": "text",
        "p_contract_version": "text",
        "p_exit_aware": "boolean",
        "p_codec": "text",
        "p_classification": "text",
        "p_retention_id": "text",
        "p_payload": "bytea",
        "p_safety": "text",
        "p_retry_algorithm": "text",
        "p_max_attempts": "integer",
        "p_max_elapsed_us": "bigint",
        "p_initial_delay_us": "bigint",
        "p_max_delay_us": "bigint",
        "p_lease_us": "bigint",
        "p_renewal_us": "bigint",
        "p_max_lease_us": "bigint",
        "p_plan_version": "smallint",
        "p_offsets_us": "bigint[]",
        "p_circuit_us": "bigint",
        "p_deadline": "timestamptz",
        "p_due_at": "timestamptz",
        "p_priority": "smallint",
        "p_store_id": "uuid",
        "p_epoch": "bigint",
    },
    (
        "outcome",
        "code",
        "work_id",
        # As text and number: a connection may turn both types into whatever its application likes.
        "activity_id::text",
        "command_id",
        "revision",
        "(extract(epoch from accepted_at) * 1000000)::bigint",
    ),
)

_REFUSALS = {
    "ASDUR102": "the command id or the idempotency key stands for another request",
    "ASDUR107": "the scope is disabled",
    "ASDUR108": "the runtime epoch of this process is not the active one",
    "ASDUR115": "the connection leads to another store",
    "ASDUR119": "a live worker that runs this contract does not know typed exits",
    "ASDUR121": "the deadline has passed",
}


def accept_work(request: WorkRequest, *, store_id: UUID, epoch: int) -> Call[Acceptance]:
    """Accept Work inside the transaction that runs the call.

    A refusal is raised after its row was read, so the transaction stays usable.
    """
    arguments = (
        *(request.scope, request.command_id, request.idempotency_key),
        *(request.contract_name, request.contract_version, boolean(request.exit_aware)),
        *(request.codec, request.classification, request.retention_id),
        "\\x" + request.payload.hex(),
        request.safety.value,
        *_policy(request.retry, max_attempts=request.max_attempts),
        "1" if request.is_planned else None,
        *_plan(request.plan),
        _moment(request.deadline),
        _moment(request.due_at),
        str(request.priority),
        str(store_id),
        str(epoch),
    )
    return Call(ACCEPT_WORK, arguments, _read_acceptance)


def _policy(retry: WorkRetry, *, max_attempts: int) -> tuple[str, ...]:
    durations = (
        *(retry.max_elapsed, retry.initial_delay, retry.max_delay),
        *(retry.lease, retry.renewal, retry.max_lease),
    )
    return (retry.algorithm, str(max_attempts), *map(_microseconds, durations))


def _plan(plan: WorkPlan | None) -> tuple[str | None, str | None]:
    if plan is None:
        return None, None
    offsets = [offset // _MICROSECOND for offset in plan.offsets]
    return integer_array(offsets), _microseconds(plan.circuit)


def _microseconds(duration: timedelta) -> str:
    return str(duration // _MICROSECOND)


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read_acceptance(rows: Rows) -> Acceptance:
    outcome, code, work_id, activity_id, command_id, revision, accepted_us = rows[0]
    if code is not None:
        raise from_work_code(code, _REFUSALS.get(code, "the request was refused"))
    kind = Duplicate if outcome == "duplicate" else Accepted
    return kind(
        work_id=WorkId(work_id),
        activity_id=UUID(activity_id),
        command_id=command_id,
        revision=revision,
        accepted_at=_EPOCH + timedelta(microseconds=accepted_us),
    )
