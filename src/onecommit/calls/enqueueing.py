"""Putting jobs into a queue."""

from collections.abc import Sequence

from onecommit.calls.call import Call, Routine, Rows
from onecommit.calls.literals import text_array
from onecommit.domain.identity import JobId
from onecommit.domain.job import Enqueued

ENQUEUE_JOBS = Routine(
    "enqueue_jobs",
    {
        "p_queue": "text",
        "p_kinds": "text[]",
        "p_args": "text[]",
        "p_options": "jsonb",
        "p_epoch": "bigint",
    },
    ("job_ids", "created"),
)

ENQUEUE_JOB = Routine(
    "enqueue_job",
    {
        "p_queue": "text",
        "p_kind": "text",
        "p_args": "text",
        "p_priority": "integer",
        "p_max_attempts": "integer",
        "p_options": "jsonb",
        "p_epoch": "bigint",
    },
    ("enqueue_job",),
)


def enqueue_job(
    queue: str,
    *,
    kind: str,
    args: str,
    priority: int,
    max_attempts: int,
    options: str | None,
    epoch: int,
) -> Call[Enqueued]:
    """Enqueue one job without a unique key or a parent that may run at once. `args`: a JSON object.

    `options`: what travels with the job as JSON, or None.
    """
    arguments = (queue, kind, args, str(priority), str(max_attempts), options, str(epoch))
    return Call(ENQUEUE_JOB, arguments, _read_job_id)


def enqueue_conditional_job(
    queue: str, *, kind: str, args: str, options: str | None, epoch: int
) -> Call[Enqueued]:
    """Enqueue one job with a unique key, a time or a parent. `kind`: an array literal; `options`: JobOptions as JSON."""
    arguments = (queue, kind, text_array((args,), field="args"), options, str(epoch))
    return Call(ENQUEUE_JOBS, arguments, _read_one)


def enqueue_jobs(
    queue: str,
    *,
    kinds: str,
    args: Sequence[str],
    options: str | None = None,
    epoch: int,
) -> Call[list[Enqueued]]:
    """Enqueue many jobs. `kinds`: an array literal of one for all, or one for each.

    `options`: one JSON object for all, or an array of one for each.
    """
    arguments = (
        queue,
        kinds,
        text_array(args, field="args"),
        options,
        str(epoch),
    )
    return Call(ENQUEUE_JOBS, arguments, _read_many)


def _read_one(rows: Rows) -> Enqueued:
    job_ids, created = rows[0]
    return Enqueued(job_ids[0], created is None or created[0] is not False)


def _read_job_id(rows: Rows) -> Enqueued:
    return Enqueued(rows[0][0])


def _read_many(rows: Rows) -> list[Enqueued]:
    job_ids, created = rows[0]
    if created is None:
        return list(map(Enqueued, job_ids))
    made = [flag is not False for flag in created]
    return [Enqueued(JobId(job_id), flag) for job_id, flag in zip(job_ids, made, strict=True)]
