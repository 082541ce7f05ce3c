"""A worker whose failures are the test's."""

from collections.abc import Mapping
from typing import Any

from onecommit.app.app import App
from onecommit.calls.views import get_job
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.event import line_of
from onecommit.telemetry.events import (
    AttemptFailed,
    CompletedThenRaised,
    Event,
    FollowUpFailed,
    NoReceipt,
    ReceiptWithoutCompletion,
    WorkAttemptFailed,
    log_event,
)
from onecommit.worker import Worker

Failure = (
    AttemptFailed
    | NoReceipt
    | ReceiptWithoutCompletion
    | CompletedThenRaised
    | FollowUpFailed
    | WorkAttemptFailed
)


class JobsFailed(AssertionError):
    """Handlers or executors raised while `run_jobs` ran them; the message says which and what."""


async def run_jobs(app: App, *, queues: Mapping[str, int] | None = None, **settings: Any) -> None:
    """Run every job, and all Work, that can run now, as a worker does; return when nothing is left.

    Retries, snoozes and delayed jobs that are due later stay. The arguments are those of `App.worker`.

    Raises:
        JobsFailed: An attempt failed, or a caller-owned one did not follow its contract; its job stands as
            in production, retried later or dead.
    """
    failures: list[Failure] = []

    def note(event: Event) -> None:
        log_event(event)
        if isinstance(event, Failure):
            failures.append(event)

    asked = app.worker(queues=queues, **settings).settings
    async with Worker(app, asked, emit=note) as worker:
        await worker.drain()
    if failures:
        async with AsyncStore(app.settings) as store:
            said = [await _sentence(store, failure) for failure in failures]
        raise JobsFailed("\n  ".join([f"{len(said)} attempts failed:", *said]))


async def _sentence(store: AsyncStore, failure: Failure) -> str:
    """The line of the log, and what the exception said, which no log holds."""
    line = line_of(failure)
    if isinstance(failure, WorkAttemptFailed):
        return line
    job = await store.run(get_job(failure.job))
    # The store keeps the last failure of a job, which may be that of a later attempt.
    if job is None or job.attempt != failure.attempt or "error" not in (job.detail or ()):
        return line
    return f"{line}: {job.detail['type']}: {job.detail['error']}"
