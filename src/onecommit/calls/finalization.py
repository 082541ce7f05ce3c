"""Completing an attempt in the caller's transaction, and asking what became of it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from onecommit.calls.call import Call, Routine, Rows
from onecommit.calls.literals import integer_array
from onecommit.domain.attempt import Attempt
from onecommit.domain.evidence import AttemptState, AttemptStatus
from onecommit.domain.job import Outcome
from onecommit.domain.token import (
    FinalizationReceipt,
    FinalizationToken,
    PortableToken,
    ReceiptEvidence,
    issue_receipt,
)
from onecommit.errors import StaleAttempt

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TOKEN = {
    "job_id": "bigint",
    "run_lease": "bigint",
    "claim_slot": "integer",
    "receipt_id": "bigint",
    "batch_id": "bigint",
    "batch_index": "integer",
}

COMPLETE_JOB = Routine(
    "complete_job",
    {**_TOKEN, "progress": "jsonb"},
    (
        "contract_version",
        *_TOKEN,
        "outcome",
        # A number, since a connection may turn times into whatever its application likes.
        "(extract(epoch from finished_at) * 1000000)::bigint",
        "transaction_id",
    ),
)
ATTEMPT_STATUS = Routine(
    "attempt_status", _TOKEN, ("state", "outcome", "holder_pid", "finished_at")
)

COMPLETED_ATTEMPTS = Routine(
    "completed_attempts",
    {"p_chapter": "integer", "p_lanes": "smallint[]", "p_seqs": "bigint[]"},
    ("completed_attempts",),
)


def complete_job(token: FinalizationToken, *, progress: str | None) -> Call[FinalizationReceipt]:
    """Complete this attempt inside the transaction that runs the call. `progress`: a JSON text."""
    arguments = (*map(str, token.portable), progress)
    return Call(COMPLETE_JOB, arguments, partial(_read_receipt, token))


def attempt_status(token: FinalizationToken) -> Call[AttemptStatus]:
    """What the store holds about this attempt."""
    return Call(ATTEMPT_STATUS, tuple(map(str, token.portable)), _read_status)


def completed_attempts(chapter: int, attempts: Sequence[Attempt]) -> Call[set[int]]:
    """Which of these attempts of one chapter are completed, by their positions from 1."""
    arguments = (
        str(chapter),
        integer_array([attempt.lane for attempt in attempts]),
        integer_array([attempt.seq for attempt in attempts]),
    )
    return Call(COMPLETED_ATTEMPTS, arguments, _read_positions)


def _read_positions(rows: Rows) -> set[int]:
    return {position for (position,) in rows}


def _read_receipt(token: FinalizationToken, rows: Rows) -> FinalizationReceipt:
    version, *portable, outcome, finished_us, transaction_id = rows[0]
    if PortableToken(*portable) != token.portable:
        raise StaleAttempt("the store answered for another attempt")
    evidence = ReceiptEvidence(
        contract_version=version,
        outcome=Outcome(outcome),
        finished_at=_EPOCH + timedelta(microseconds=finished_us),
        transaction_id=transaction_id,
    )
    return issue_receipt(token, evidence)


def _read_status(rows: Rows) -> AttemptStatus:
    state, outcome, holder_pid, finished_at = rows[0]
    return AttemptStatus(
        state=AttemptState(state),
        outcome=None if outcome is None else Outcome(outcome),
        holder_pid=holder_pid,
        finished_at=finished_at,
    )
