"""Registering callbacks, waiting for them and resolving them."""

from collections.abc import Sequence
from functools import partial

from onecommit.calls.call import Call, Routine, Rows, read_scalar
from onecommit.calls.literals import integer_array, text_array
from onecommit.domain.attempt import Attempt
from onecommit.domain.callback import Callback, CallbackAnswer, Resolution, Resolved

REGISTER_CALLBACK = Routine(
    "register_callback",
    {
        "p_callback": "uuid",
        "p_job_id": "bigint",
        "p_run_lease": "bigint",
        "p_claim_slot": "integer",
        "p_receipt_id": "bigint",
        "p_batch_id": "bigint",
        "p_batch_index": "integer",
        "p_name": "text",
        "p_timeout_us": "bigint",
        "p_epoch": "bigint",
    },
    ("callback_id", "timeout_at"),
)
AWAIT_CALLBACKS = Routine(
    "await_callbacks",
    {
        "p_callbacks": "uuid[]",
        "p_job_ids": "bigint[]",
        "p_run_leases": "bigint[]",
        "p_epoch": "bigint",
    },
    ("callback_id", "resolution", "payload"),
)
RESUME_EXTERNAL = Routine(
    "resume_external",
    {"p_callback": "uuid", "p_payload": "text", "p_epoch": "bigint"},
    ("resume_external",),
)
COMPLETE_EXTERNAL = Routine(
    "complete_external",
    {"p_callback": "uuid", "p_result": "text", "p_epoch": "bigint"},
    ("complete_external",),
)
FAIL_EXTERNAL = Routine(
    "fail_external",
    {"p_callback": "uuid", "p_reason": "text", "p_epoch": "bigint"},
    ("fail_external",),
)
RETRY_EXTERNAL = Routine(
    "retry_external",
    {"p_callback": "uuid", "p_delay_us": "bigint", "p_reason": "text", "p_epoch": "bigint"},
    ("retry_external",),
)


def register_callback(
    attempt: Attempt, *, callback_id: str, name: str | None, timeout_us: int, epoch: int
) -> Call[Callback]:
    """Register a callback of the attempt; the same id again after a lost reply is success."""
    arguments = (callback_id, *map(str, attempt.token.portable), name, str(timeout_us), str(epoch))
    return Call(REGISTER_CALLBACK, arguments, partial(_read_callback, attempt))


def await_callbacks(callbacks: Sequence[Callback], *, epoch: int) -> Call[list[Resolved]]:
    """Ask which of these are resolved; the others count as awaited."""
    arguments = (
        text_array([each.id for each in callbacks], field="callbacks"),
        integer_array([each.job_id for each in callbacks]),
        integer_array([each.run_lease for each in callbacks]),
        str(epoch),
    )
    return Call(AWAIT_CALLBACKS, arguments, _read_resolved)


def resume_external(callback_id: str, *, payload: str | None, epoch: int) -> Call[CallbackAnswer]:
    """Let the handler go on. `payload`: a JSON text."""
    return Call(RESUME_EXTERNAL, (callback_id, payload, str(epoch)), _read_answer)


def complete_external(callback_id: str, *, result: str | None, epoch: int) -> Call[CallbackAnswer]:
    """Complete the attempt without its handler. `result`: a JSON text."""
    return Call(COMPLETE_EXTERNAL, (callback_id, result, str(epoch)), _read_answer)


def fail_external(callback_id: str, *, reason: str, epoch: int) -> Call[CallbackAnswer]:
    """Send the job to the dead letters."""
    return Call(FAIL_EXTERNAL, (callback_id, reason, str(epoch)), _read_answer)


def retry_external(
    callback_id: str, *, delay_us: int, reason: str, epoch: int
) -> Call[CallbackAnswer]:
    """End the attempt as a failed one that is tried again."""
    arguments = (callback_id, str(delay_us), reason, str(epoch))
    return Call(RETRY_EXTERNAL, arguments, _read_answer)


def _read_callback(attempt: Attempt, rows: Rows) -> Callback:
    callback_id, timeout_at = rows[0]
    return Callback(
        id=callback_id,
        job_id=attempt.job_id,
        run_lease=attempt.run_lease,
        timeout_at=timeout_at,
    )


def _read_resolved(rows: Rows) -> list[Resolved]:
    return [Resolved(each, Resolution(how), payload) for each, how, payload in rows]


def _read_answer(rows: Rows) -> CallbackAnswer:
    return CallbackAnswer(read_scalar(rows))
