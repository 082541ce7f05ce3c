"""A worker whose failures are the test's."""

from collections.abc import Mapping
from typing import Any

from onecommit.app.app import App
from onecommit.calls.views import get_job
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import AttemptFailed, Event, WorkAttemptFailed, log_event
from onecommit.worker import Worker

Failure = AttemptFailed | WorkAttemptFailed


class JobsFailed(AssertionError):
    """Handlers or executors raised while `run_jobs` ran them; the message says which and what."""


async def run_jobs(app: App, *, queues: Mapping[str, int] | None = None, **settings: Any) -> None:
    """Run every job, and all Work, that can run now, as a worker does; return when nothing is left.

    Retries, snoozes and delayed jobs that are due later stay. The arguments are those of `App.worker`.

    Raises:
        JobsFailed: An attempt failed; its job stands as in production, retried later or dead.
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
        raise JobsFailed("\n".join([f"{len(said)} attempts failed:", *said]))


async def _sentence(store: AsyncStore, failure: Failure) -> str:
    if isinstance(failure, WorkAttemptFailed):
        where = f"{failure.contract}, Work {failure.work}, attempt {failure.attempt}"
        return f"  {where}: {failure.failure} ({failure.frames})"
    where = f"{failure.kind}, job {failure.job}, attempt {failure.attempt}, {failure.code}"
    what = await _what_it_said(store, failure)
    return f"  {where}: {failure.failure}{what} ({failure.frames})"


async def _what_it_said(store: AsyncStore, failure: AttemptFailed) -> str:
    """The store keeps the text of a job's last failure, which may be that of a later attempt."""
    job = await store.run(get_job(failure.job))
    detail = job.detail if job is not None and isinstance(job.detail, dict) else {}
    return f": {detail.get('error')}" if detail.get("type") == failure.failure else ""
