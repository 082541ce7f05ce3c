"""Closing attempts together with the jobs that follow them."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from onecommit.calls.attempts import ATTEMPT_KEYS, keys_of, read_losses
from onecommit.calls.call import Call, Routine, Rows, read_scalar
from onecommit.calls.enqueueing import enqueue_jobs
from onecommit.calls.literals import integer_array, nullable_text_array, text_array
from onecommit.domain.callback import Callback
from onecommit.domain.closing import FollowedUp, Loss
from onecommit.domain.follow_up import FollowUp
from onecommit.domain.identity import JobId, RunLease
from onecommit.domain.job import Enqueued, JobState

CLOSE_WITH_FOLLOW_UPS = Routine(
    "close_with_follow_ups",
    {
        **ATTEMPT_KEYS,
        "p_outcomes": "text[]",
        "p_delays_us": "bigint[]",
        "p_codes": "text[]",
        "p_details": "text[]",
        "p_side": "bigint[]",
        "p_owners": "integer[]",
        "p_queues": "text[]",
        "p_kinds": "text[]",
        "p_args": "text[]",
        "p_options": "text[]",
    },
    ("item", "verdict"),
)


class ClosedJob(NamedTuple):
    """A job whose attempt was ended without its worker, as it stands now."""

    job_id: JobId
    state: JobState
    kind: str
    attempt: int
    max_attempts: int
    run_lease: RunLease
    code: str | None
    args: str | None
    detail: str | None
    """As JSON; args and detail only of the kinds that were named."""


CLOSED_JOBS = Routine(
    "closed_jobs", {"p_job_ids": "bigint[]", "p_kinds": "text[]"}, ClosedJob._fields
)
CLOSED_BY_CALLBACK = Routine(
    "closed_by_callback", {"p_callback": "uuid", "p_kinds": "text[]"}, ClosedJob._fields
)
BEGIN_WAIT = Routine(
    "begin_wait",
    {
        "p_callback": "uuid",
        "p_job_id": "bigint",
        "p_run_lease": "bigint",
        "p_epoch": "bigint",
    },
    ("begin_wait",),
)


def close_with_follow_ups(items: Sequence[FollowedUp], *, epoch: int) -> Call[list[Loss]]:
    """Close attempts and enqueue their follow-ups; repeating it after a lost reply is success.

    Takes each attempt's lock as `finish_jobs` does with `lock`. What loses enqueues nothing.
    """
    finishes = [item.finish for item in items]
    follow_ups = [follow_up for item in items for follow_up in item.follow_ups]
    owners = [number for number, item in enumerate(items, start=1) for _ in item.follow_ups]
    arguments = (
        *keys_of([finish.attempt for finish in finishes], epoch),
        text_array([finish.outcome for finish in finishes], field="outcomes"),
        integer_array([finish.delay_us for finish in finishes]),
        nullable_text_array([finish.code for finish in finishes], field="codes"),
        nullable_text_array([finish.detail for finish in finishes], field="details"),
        integer_array([item.finish.attempt.job_id for item in items if _leaves_side_rows(item)]),
        integer_array(owners),
        text_array([follow_up.queue for follow_up in follow_ups], field="queue"),
        text_array([follow_up.kind for follow_up in follow_ups], field="name"),
        text_array([follow_up.args for follow_up in follow_ups], field="args"),
        nullable_text_array([follow_up.options for follow_up in follow_ups], field="options"),
    )
    return Call(CLOSE_WITH_FOLLOW_UPS, arguments, read_losses)


def closed_jobs(job_ids: Sequence[int], *, kinds: Collection[str]) -> Call[list[ClosedJob]]:
    """The jobs that this transaction has rescued or cancelled; arguments only of the kinds named."""
    arguments = (integer_array(list(job_ids)), text_array(sorted(kinds), field="kinds"))
    return Call(CLOSED_JOBS, arguments, _read_closed)


def closed_by_callback(callback_id: str, *, kinds: Collection[str]) -> Call[list[ClosedJob]]:
    """The job whose attempt this transaction has ended by resolving the callback, if it has."""
    arguments = (callback_id, text_array(sorted(kinds), field="kinds"))
    return Call(CLOSED_BY_CALLBACK, arguments, _read_closed)


def begin_wait(callback: Callback, *, epoch: int) -> Call[bool]:
    """Mark the callback as awaited; true for the call that did it."""
    arguments = (callback.id, str(callback.job_id), str(callback.run_lease), str(epoch))
    return Call(BEGIN_WAIT, arguments, read_scalar)


def enqueue_follow_up(follow_up: FollowUp, *, epoch: int) -> Call[list[Enqueued]]:
    """Enqueue one follow-up in the transaction that runs the call."""
    return enqueue_jobs(
        follow_up.queue,
        kinds=text_array([follow_up.kind], field="name"),
        args=[follow_up.args],
        options=follow_up.options,
        epoch=epoch,
    )


def _leaves_side_rows(item: FollowedUp) -> bool:
    return item.progressed or item.finish.attempt.may_hold_unique_key


def _read_closed(rows: Rows) -> list[ClosedJob]:
    return [ClosedJob(row[0], JobState(row[1]), *row[2:]) for row in rows]
