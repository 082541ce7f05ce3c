"""Reading jobs, queues and workers."""

from collections.abc import Sequence
from typing import Any

import msgspec

from onecommit.calls.call import Call, Routine, Rows
from onecommit.calls.literals import integer, optional_integer, optional_text
from onecommit.domain.arguments import INTEGER
from onecommit.domain.job import JobView
from onecommit.domain.queue import QueueFinalization, QueueView
from onecommit.domain.worker import WorkerView

_JOB_COLUMNS = JobView.__struct_fields__
_QUEUE_COLUMNS = (
    "queue",
    "paused",
    "lanes",
    "ready",
    "scheduled",
    "dead",
    "running",
    "caller_owned",
    "blocked",
)
_JSON_COLUMNS = ("args", "options", "progress", "detail")

GET_JOB = Routine("get_job", {"p_job_id": "bigint"}, _JOB_COLUMNS)
LIST_JOBS = Routine(
    "list_jobs",
    {
        "p_state": "text",
        "p_queue": "text",
        "p_kind": "text",
        "p_limit": "integer",
        "p_before": "bigint",
    },
    _JOB_COLUMNS,
)
LIST_QUEUES = Routine("list_queues", {}, _QUEUE_COLUMNS)
FINALIZATION_STATUS = Routine(
    "finalization_status",
    {},
    ("queue", "enabled_at is not null", "waiting_for", "disabled_at is not null"),
)
LIST_WORKERS = Routine(
    "list_workers",
    {},
    ("worker", "name", "info::text", "epoch", "started_at", "heartbeat_at", "ended_at"),
)


def get_job(job_id: int) -> Call[JobView | None]:
    """One job with its arguments, or None."""
    return Call(GET_JOB, (integer(job_id, field="job_id"),), _read_job)


def list_jobs(
    *, state: str | None, queue: str | None, kind: str | None, limit: int, before: int | None
) -> Call[list[JobView]]:
    """Jobs from the newest to the oldest, below the id `before`."""
    arguments = (
        optional_text(state, field="state"),
        optional_text(queue, field="queue"),
        optional_text(kind, field="kind"),
        integer(limit, field="limit", bits=INTEGER),
        optional_integer(before, field="before"),
    )
    return Call(LIST_JOBS, arguments, _read_jobs)


def list_queues() -> Call[list[QueueView]]:
    """Every queue and what lies in it."""
    return Call(LIST_QUEUES, (), _read_queues)


def finalization_status() -> Call[list[QueueFinalization]]:
    """The queues that accept caller-owned completion, or would but for old workers or an operator."""
    return Call(FINALIZATION_STATUS, (), _read_finalization)


def list_workers() -> Call[list[WorkerView]]:
    """Every incarnation that is alive or has open claims."""
    return Call(LIST_WORKERS, (), _read_workers)


def _read_job(rows: Rows) -> JobView | None:
    return _view_of(rows[0]) if rows else None


def _read_jobs(rows: Rows) -> list[JobView]:
    return [_view_of(row) for row in rows]


def _view_of(row: Sequence[Any]) -> JobView:
    fields: dict[str, Any] = dict(zip(_JOB_COLUMNS, row, strict=True))
    for name in _JSON_COLUMNS:
        if fields[name] is not None:
            fields[name] = msgspec.json.decode(fields[name])
    return msgspec.convert(fields, JobView)


def _read_queues(rows: Rows) -> list[QueueView]:
    return [QueueView(**dict(zip(_QUEUE_COLUMNS, row, strict=True))) for row in rows]


def _read_finalization(rows: Rows) -> list[QueueFinalization]:
    return [
        QueueFinalization(queue=queue, enabled=enabled, waiting_for=tuple(names), disabled=disabled)
        for queue, enabled, names, disabled in rows
    ]


def _read_workers(rows: Rows) -> list[WorkerView]:
    found = [dict(zip(WorkerView.__struct_fields__, row, strict=True)) for row in rows]
    return [
        WorkerView(**{**fields, "info": msgspec.json.decode(fields["info"])}) for fields in found
    ]
