"""What a job waits for, said from what a reader sees."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onecommit.domain.job import JobState, JobView
from onecommit.domain.job_reason import reasons
from onecommit.domain.queue import QueueView
from onecommit.domain.worker import WorkerView

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def job(state: JobState, **fields: Any) -> JobView:
    given = {
        "job_id": 17, "state": state, "queue": "email", "priority": 2, "kind": "send", "attempt": 0,
        "max_attempts": 5, "run_lease": 1, "created_at": NOW, "run_at": None, "finished_at": None,
        "outcome": None, "code": None, "args": None, "options": None, "progress": None, "detail": None,
        "parent_id": None,
    }  # fmt: skip
    return JobView(**given | fields)


def worker(name: str, *queues: str, silent: float = 1, ended: bool = False) -> WorkerView:
    return WorkerView(
        worker=1, name=name, info={"queues": list(queues)}, epoch=1, started_at=NOW,
        heartbeat_at=NOW - timedelta(seconds=silent), ended_at=NOW if ended else None,
    )  # fmt: skip


def said(of: JobView, *workers: WorkerView, paused: bool = False, **more: Any) -> list[str]:
    queue = QueueView(
        queue="email", paused=paused, lanes=1, ready=3, scheduled=0, dead=0, running=2,
        caller_owned=False, blocked=0,
    )  # fmt: skip
    return reasons(of, now=NOW, queue=queue, workers=workers, parent=more.get("parent"))


def test_a_worker_that_is_silent_or_gone_does_not_count_as_one_that_serves():
    """Silent: it is named beside the others. Ended, or without information: it does not live."""
    ready = job(JobState.READY)
    both = said(ready, worker("a", "email"), worker("b", "email", silent=31))
    assert both == [
        "it waits for its turn: 3 jobs of the queue are ready and 2 run, on a, b",
        "the worker b has been silent since 2026-01-02 03:03:34+00:00",
    ]
    assert said(ready, worker("a", "email", ended=True)) == ["no worker lives, so nobody takes it"]
    strange = WorkerView(
        worker=1, name="sql", info="none", epoch=1, started_at=NOW, heartbeat_at=NOW, ended_at=None
    )
    assert said(ready, strange) == [
        "none of the 1 living workers serves the queue email, so nobody takes it"
    ]
    assert said(ready, worker("a", "email"), paused=True) == [
        "an operator has paused the queue email"
    ]


def test_a_retry_that_is_overdue_waits_for_the_leading_worker():
    due = job(JobState.SCHEDULED, attempt=2, run_at=NOW - timedelta(seconds=5))
    assert said(due, worker("a", "email"), paused=True) == [
        "attempt 3 of 5 has been due since 2026-01-02 03:04:00+00:00; the leading worker makes it ready",
        "an operator has paused the queue email",
    ]


def test_a_blocked_job_names_its_parent_also_if_that_is_forgotten():
    blocked = job(JobState.BLOCKED, parent_id=16)
    assert said(blocked, parent=job(JobState.WAITING)) == [
        "it waits for the end of job 16, which is waiting"
    ]
    assert said(blocked) == [
        "it waits for job 16, which the store knows no longer; the leading worker decides",
        "no worker lives, so nobody leads",
    ]


@pytest.mark.parametrize("state", JobState)
def test_every_state_has_a_reason(state: JobState):
    assert said(job(state, parent_id=1), worker("a", "email"))
