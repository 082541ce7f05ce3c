"""What operators do to jobs and queues; each names who did it and why."""

from collections.abc import Collection, Iterable

from onecommit.calls.call import Call, Routine, Rows, read_nothing
from onecommit.calls.literals import (
    id_array,
    integer,
    optional_integer,
    optional_text,
    text_array,
)
from onecommit.domain.arguments import checked_text
from onecommit.domain.identity import JobId
from onecommit.domain.job import UNFINISHED, JobResult, JobState
from onecommit.errors import InvalidArgument

_ON_JOBS = {"p_job_ids": "bigint[]", "p_actor": "text", "p_reason": "text", "p_epoch": "bigint"}
_ON_A_QUEUE = {"p_queue": "text", "p_actor": "text", "p_reason": "text", "p_epoch": "bigint"}

CANCEL_JOBS = Routine("cancel_jobs", _ON_JOBS, ("job_id", "result"))
RETRY_DEAD_JOBS = Routine("retry_dead_jobs", _ON_JOBS, ("job_id", "result"))
PURGE_DEAD_JOBS = Routine("purge_dead_jobs", _ON_JOBS, ("job_id", "result"))
UNFINISHED_JOBS = Routine(
    "unfinished_jobs",
    {
        "p_states": "text[]",
        "p_queue": "text",
        "p_kind": "text",
        "p_tags": "text[]",
        "p_limit": "integer",
        "p_before": "bigint",
    },
    ("job_id",),
)
PAUSE_QUEUE = Routine("pause_queue", _ON_A_QUEUE, ("pause_queue",))
RESUME_QUEUE = Routine("resume_queue", _ON_A_QUEUE, ("resume_queue",))
DISABLE_CALLER_OWNED = Routine("disable_caller_owned", _ON_A_QUEUE, ("disable_caller_owned",))
ALLOW_CALLER_OWNED = Routine("allow_caller_owned", _ON_A_QUEUE, ("allow_caller_owned",))


def on_jobs(
    routine: Routine, job_ids: Iterable[int], *, actor: str, reason: str, epoch: int
) -> Call[dict[JobId, JobResult]]:
    """Cancel, retry or purge jobs: `routine` says which."""
    arguments = (id_array(job_ids, field="job_ids"), *_who(actor, reason), str(epoch))
    return Call(routine, arguments, _read_results)


def unfinished_jobs(
    *,
    states: Collection[JobState] | None,
    queue: str | None,
    kind: str | None,
    tags: Collection[str],
    limit: int,
    before: int | None,
) -> Call[list[JobId]]:
    """Ids of jobs that have not finished, from the newest to the oldest, below the id `before`."""
    arguments = (
        None if states is None else text_array(_unfinished(states), field="states"),
        optional_text(queue, field="queue"),
        optional_text(kind, field="kind"),
        text_array(_tags(tags), field="tags") if tags else None,
        integer(limit, field="limit"),
        optional_integer(before, field="before"),
    )
    return Call(UNFINISHED_JOBS, arguments, lambda rows: [JobId(job_id) for (job_id,) in rows])


def _unfinished(states: object) -> list[str]:
    listed = [] if isinstance(states, str) or not isinstance(states, Collection) else list(states)
    if not listed or not all(state in UNFINISHED for state in listed):
        raise InvalidArgument(
            f"`states` is not a list of some of {', '.join(UNFINISHED)}",
            field="states",
            remedy="A job in any other state has finished.",
        )
    return [JobState(state).value for state in listed]


def _tags(tags: object) -> list[str]:
    if isinstance(tags, str | bytes) or not isinstance(tags, Collection):
        raise InvalidArgument("`tags` is not a list of texts", field="tags")
    return [checked_text(tag, field="tags") for tag in tags]


def on_queue(routine: Routine, queue: str, *, actor: str, reason: str, epoch: int) -> Call[None]:
    """Pause or resume a queue, disable or allow caller-owned completion: `routine` says which."""
    arguments = (checked_text(queue, field="queue"), *_who(actor, reason), str(epoch))
    return Call(routine, arguments, read_nothing)


def _who(actor: str, reason: str) -> tuple[str, str]:
    return checked_text(actor, field="actor"), checked_text(reason, field="reason")


def _read_results(rows: Rows) -> dict[JobId, JobResult]:
    return {JobId(job_id): JobResult(result) for job_id, result in rows}
