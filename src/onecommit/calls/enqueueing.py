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


def enqueue_job(
    queue: str, *, kind: str, args: str, options: str | None, epoch: int
) -> Call[Enqueued]:
    """Enqueue one job. `args`: a JSON object; `options`: a JobOptions as JSON, or None.

    `kind` is the array literal that `text_array` makes of it: a producer has it ready.
    """
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


def _read_many(rows: Rows) -> list[Enqueued]:
    job_ids, created = rows[0]
    if created is None:
        return list(map(Enqueued, job_ids))
    made = [flag is not False for flag in created]
    return [Enqueued(JobId(job_id), flag) for job_id, flag in zip(job_ids, made, strict=True)]
