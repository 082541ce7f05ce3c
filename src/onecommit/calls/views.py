"""Reading jobs, queues, workers, callbacks and the ring."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from onecommit.calls.call import Call, Routine, Rows
from onecommit.calls.literals import integer, optional_integer, optional_text
from onecommit.domain.arguments import INTEGER
from onecommit.domain.callback import CallbackView
from onecommit.domain.identity import WorkerId
from onecommit.domain.job import JobView
from onecommit.domain.queue import QueueFinalization, QueueView
from onecommit.domain.ring import Chapter, ChapterPin, StoreHealth
from onecommit.domain.worker import WorkerLoad, WorkerView

T = TypeVar("T")

_JOB_COLUMNS = JobView.__struct_fields__
_JSON_COLUMNS = ("args", "options", "progress", "detail")


def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


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
LIST_QUEUES = Routine("list_queues", {}, _names(QueueView))
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

WORKER_LOADS = Routine("worker_loads", {}, WorkerLoad.__struct_fields__)
LIST_CALLBACKS = Routine(
    "list_callbacks",
    {
        "p_job_id": "bigint",
        "p_queue": "text",
        "p_kind": "text",
        "p_limit": "integer",
        "p_before": "bigint",
    },
    CallbackView.__struct_fields__,
)
STORE_HEALTH = Routine("store_health", {}, _names(StoreHealth))
RING_STATUS = Routine("ring_status", {}, _names(Chapter))
CHAPTER_PINS = Routine("chapter_pins", {}, _names(ChapterPin))


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
    return Call(LIST_QUEUES, (), lambda rows: list(_read_each(QueueView, rows)))


def finalization_status() -> Call[list[QueueFinalization]]:
    """The queues that accept caller-owned completion, or would but for old workers or an operator."""
    return Call(FINALIZATION_STATUS, (), _read_finalization)


def list_workers() -> Call[list[WorkerView]]:
    """Every incarnation that is alive or has open claims."""
    return Call(LIST_WORKERS, (), _read_workers)


def worker_loads() -> Call[dict[WorkerId, WorkerLoad]]:
    """What each of them holds."""
    return Call(WORKER_LOADS, (), _read_loads)


def list_callbacks(
    *, job_id: int | None, queue: str | None, kind: str | None, limit: int, before: int | None
) -> Call[list[CallbackView]]:
    """Callbacks that are not resolved, of the newest jobs first, below the job's id `before`."""
    arguments = (
        optional_integer(job_id, field="job_id"),
        optional_text(queue, field="queue"),
        optional_text(kind, field="kind"),
        integer(limit, field="limit", bits=INTEGER),
        optional_integer(before, field="before"),
    )
    return Call(LIST_CALLBACKS, arguments, _read_callbacks)


def store_health() -> Call[StoreHealth]:
    """Where the ring and its maintenance stand."""
    return Call(STORE_HEALTH, (), lambda rows: _read_each(StoreHealth, rows)[0])


def ring_status() -> Call[tuple[Chapter, ...]]:
    """The chapters that stand, from the oldest."""
    return Call(RING_STATUS, (), lambda rows: _read_each(Chapter, rows))


def chapter_pins() -> Call[tuple[ChapterPin, ...]]:
    """What keeps the oldest chapter from being reclaimed; nothing for the head."""
    return Call(CHAPTER_PINS, (), lambda rows: _read_each(ChapterPin, rows))


def _read_each(kind: type[T], rows: Rows) -> tuple[T, ...]:
    names = _names(kind)
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in rows)


def _read_loads(rows: Rows) -> dict[WorkerId, WorkerLoad]:
    names = WorkerLoad.__struct_fields__
    found = [WorkerLoad(**dict(zip(names, row, strict=True))) for row in rows]
    return {each.worker: each for each in found}


def _read_callbacks(rows: Rows) -> list[CallbackView]:
    names = CallbackView.__struct_fields__
    return [msgspec.convert(dict(zip(names, row, strict=True)), CallbackView) for row in rows]


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
