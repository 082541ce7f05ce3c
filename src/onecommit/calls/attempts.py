"""Claiming and closing attempts."""

from collections.abc import Callable, Sequence
from itertools import repeat

from onecommit.calls.call import Call, Routine, Rows, read_nothing
from onecommit.calls.literals import (
    boolean,
    integer_array,
    nullable_text_array,
    text_array,
)
from onecommit.domain.attempt import Attempt, Claim, ClaimStatus
from onecommit.domain.closing import Finish, Loss, Verdict

CLAIM_JOBS = Routine(
    "claim_jobs",
    {
        "p_worker": "bigint",
        "p_request": "bigint",
        "p_queue": "text",
        "p_limit": "integer",
        "p_lifetime_us": "bigint",
        "p_sleep": "boolean",
        "p_epoch": "bigint",
    },
    (
        "status",
        "lane",
        "claim_slot",
        "batch_id",
        "receipt_id",
        "claimed_at",
        "deadline",
        "chapters",
        "seqs",
        "job_ids",
        "run_leases",
        "attempts",
        "max_attempts",
        "kinds",
        "args",
        "options",
        "created_at",
    ),
)

ATTEMPT_KEYS = {
    "p_epoch": "bigint",
    "p_chapters": "integer[]",
    "p_lanes": "smallint[]",
    "p_seqs": "bigint[]",
    "p_job_ids": "bigint[]",
    "p_run_leases": "bigint[]",
}

COMPLETE_JOBS = Routine(
    "complete_jobs",
    {**ATTEMPT_KEYS, "p_details": "text[]", "p_side": "bigint[]"},
    ("item", "verdict"),
)

FINISH_JOBS = Routine(
    "finish_jobs",
    {
        **ATTEMPT_KEYS,
        "p_outcomes": "text[]",
        "p_delays_us": "bigint[]",
        "p_codes": "text[]",
        "p_details": "text[]",
        "p_lock": "boolean",
    },
    ("item", "verdict"),
)

SET_PROGRESS = Routine(
    "set_progress",
    {"p_epoch": "bigint", "p_job_ids": "bigint[]", "p_run_leases": "bigint[]", "p_data": "text[]"},
    ("set_progress",),
)


def claim_jobs(
    queue: str,
    *,
    worker: int,
    request: int,
    limit: int,
    lifetime_us: int | None,
    sleep: bool | None,
    epoch: int,
) -> Call[Claim]:
    """Claim up to `limit` jobs. The same worker and request again returns the same jobs.

    `sleep` asks producers to notify: true when the worker waits for a notice if nothing is there,
    false when a notice has just woken it, None to leave what other workers asked for.
    """
    arguments = (
        str(worker),
        str(request),
        queue,
        str(limit),
        None if lifetime_us is None else str(lifetime_us),
        None if sleep is None else boolean(sleep),
        str(epoch),
    )
    return Call(CLAIM_JOBS, arguments, _read_claim)


def complete_jobs(
    attempts: Sequence[Attempt],
    *,
    details: Sequence[str | None] | None = None,
    side: Sequence[int] = (),
    epoch: int,
) -> Call[list[Loss]]:
    """Complete attempts in one statement; repeating it after a lost reply is success.

    `details`: results as JSON texts. `side`: ids of the jobs that hold a unique key or have progress.
    """
    texts = None if details is None else nullable_text_array(details, field="details")
    arguments = (*keys_of(attempts, epoch), texts, integer_array(side))
    return Call(COMPLETE_JOBS, arguments, read_losses)


def finish_jobs(finishes: Sequence[Finish], *, lock: bool = False, epoch: int) -> Call[list[Loss]]:
    """End attempts in any way but completion.

    `lock` takes each attempt's lock first and answers `busy` where a transaction holds it: needed for
    caller-owned attempts, whose commit may be in flight.
    """
    arguments = (
        *keys_of([finish.attempt for finish in finishes], epoch),
        text_array([finish.outcome for finish in finishes], field="outcomes"),
        integer_array([finish.delay_us for finish in finishes]),
        nullable_text_array([finish.code for finish in finishes], field="codes"),
        nullable_text_array([finish.detail for finish in finishes], field="details"),
        boolean(lock),
    )
    return Call(FINISH_JOBS, arguments, read_losses)


def set_progress(progress: Sequence[tuple[Attempt, str]], *, epoch: int) -> Call[None]:
    """Store the newest progress, a JSON text, of each attempt."""
    arguments = (
        str(epoch),
        integer_array([attempt.job_id for attempt, _ in progress]),
        integer_array([attempt.run_lease for attempt, _ in progress]),
        text_array([data for _, data in progress], field="progress"),
    )
    return Call(SET_PROGRESS, arguments, read_nothing)


def keys_of(attempts: Sequence[Attempt], epoch: int) -> tuple[str, ...]:
    """The arguments that name the attempts to close, in the order of `ATTEMPT_KEYS`."""
    return (
        str(epoch),
        integer_array([attempt.chapter for attempt in attempts]),
        integer_array([attempt.lane for attempt in attempts]),
        integer_array([attempt.seq for attempt in attempts]),
        integer_array([attempt.job_id for attempt in attempts]),
        integer_array([attempt.run_lease for attempt in attempts]),
    )


# map() calls the constructor from C; a checked call per attempt would double the price.
_make: Callable[..., Attempt] = Attempt


def _read_claim(rows: Rows) -> Claim:
    attempts: list[Attempt] = []
    for status, lane, slot, batch_id, receipt_id, claimed_at, deadline, *columns in rows:
        if status != "claimed":
            return Claim(status=ClaimStatus(status), attempts=attempts)
        chapters, seqs, job_ids, run_leases, numbers, most, kinds, args, options, created = columns
        attempts += map(
            _make,
            repeat(lane),
            chapters,
            seqs,
            repeat(slot),
            repeat(batch_id),
            range(1, len(seqs) + 1),
            repeat(receipt_id),
            job_ids,
            run_leases,
            numbers,
            most,
            kinds,
            args,
            options,
            created,
            repeat(claimed_at),
            repeat(deadline),
        )
    raise AssertionError("a claim ends with its summary row")


def read_losses(rows: Rows) -> list[Loss]:
    """What every closing routine returns: the items that were not recorded."""
    return [Loss(item - 1, Verdict(verdict)) for item, verdict in rows]
