"""Why a job stands where it stands, from what a reader sees: its view, its queue, the workers, its parent."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import assert_never

from onecommit.domain.job import JobState, JobView
from onecommit.domain.queue import QueueView
from onecommit.domain.worker import WorkerView


def reasons(
    job: JobView,
    *,
    now: datetime,
    queue: QueueView | None,
    workers: Sequence[WorkerView],
    parent: JobView | None,
) -> list[str]:
    """Sentences that say what the job waits for, the nearest first; they quote no payload."""
    return list(_Reasons(now, queue, workers, parent).of(job))


class _Reasons:
    def __init__(
        self,
        now: datetime,
        queue: QueueView | None,
        workers: Sequence[WorkerView],
        parent: JobView | None,
    ) -> None:
        self._now = now
        self._queue = queue
        self._alive = [each for each in workers if each.ended_at is None]
        self._silent = [each for each in self._alive if each.is_silent(now)]
        self._parent = parent

    def of(self, job: JobView) -> Iterator[str]:
        match job.state:
            case JobState.BLOCKED:
                yield from self._blocked(job)
            case JobState.SCHEDULED:
                yield from self._scheduled(job)
            case JobState.READY:
                yield from self._ready(job)
            case JobState.RUNNING:
                yield f"attempt {job.attempt} of {job.max_attempts} runs"
                yield from self._missing_workers(job.queue, "so the attempt is rescued by the next")
            case JobState.WAITING:
                yield "its handler waits for a callback from outside, until that is resolved or times out"
            case JobState.DEAD:
                yield f"it ended for good in the dead letters: {job.code or job.outcome}"
            case JobState.COMPLETED | JobState.CANCELLED:
                yield f"it has ended: {job.state}"
            case _:
                assert_never(job.state)

    def _blocked(self, job: JobView) -> Iterator[str]:
        if self._parent is None:
            yield f"it waits for job {job.parent_id}, which the store knows no longer; the leading worker decides"
            yield from self._no_worker()
            return
        yield f"it waits for the end of job {job.parent_id}, which is {self._parent.state}"

    def _scheduled(self, job: JobView) -> Iterator[str]:
        when = f"attempt {job.attempt + 1} of {job.max_attempts}"
        if job.run_at is not None and job.run_at > self._now:
            yield f"{when} is due at {_moment(job.run_at)}"
        else:
            yield f"{when} has been due since {_moment(job.run_at)}; the leading worker makes it ready"
        yield from self._paused()
        yield from self._missing_workers(job.queue, "so it will not start then")

    def _ready(self, job: JobView) -> Iterator[str]:
        yield from self._paused()
        serving = self._serving(job.queue)
        if not serving:
            yield from self._missing_workers(job.queue, "so nobody takes it")
        elif self._queue is not None and not self._queue.paused:
            names = ", ".join(each.name for each in serving)
            yield (
                f"it waits for its turn: {self._queue.ready} jobs of the queue are ready and"
                f" {self._queue.running} run, on {names}"
            )
        yield from self._silent_ones(job.queue)

    def _paused(self) -> Iterator[str]:
        if self._queue is not None and self._queue.paused:
            yield f"an operator has paused the queue {self._queue.queue}"

    def _missing_workers(self, queue: str, therefore: str) -> Iterator[str]:
        if not self._alive:
            yield f"no worker lives, {therefore}"
        elif not self._serving(queue):
            yield f"none of the {len(self._alive)} living workers serves the queue {queue}, {therefore}"

    def _no_worker(self) -> Iterator[str]:
        if not self._alive:
            yield "no worker lives, so nobody leads"

    def _silent_ones(self, queue: str) -> Iterator[str]:
        for each in self._silent:
            if each.serves(queue):
                yield f"the worker {each.name} has been silent since {_moment(each.heartbeat_at)}"

    def _serving(self, queue: str) -> list[WorkerView]:
        return [each for each in self._alive if each.serves(queue)]


def _moment(at: datetime | None) -> str:
    return "an unknown time" if at is None else at.isoformat(sep=" ", timespec="seconds")
