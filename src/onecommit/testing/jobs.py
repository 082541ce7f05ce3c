"""Jobs as a test sees them: what was enqueued, and how to be rid of it."""

from collections.abc import Awaitable
from typing import Any, overload

from onecommit.app.app import App
from onecommit.app.job import Job
from onecommit.domain.job import UNFINISHED, JobView
from onecommit.drivers.driver import (
    AsyncCallerConnection,
    SyncCallerConnection,
    async_driver_for,
    is_async_connection,
    sync_driver_for,
)
from onecommit.testing.async_jobs import MOST_JOBS, async_enqueued
from onecommit.testing.sync_jobs import sync_enqueued

_ACTOR, _REASON = "tests", "left by a test"


@overload
def enqueued(job: Job[..., Any], connection: SyncCallerConnection) -> list[JobView]: ...
@overload
def enqueued(job: Job[..., Any], connection: AsyncCallerConnection) -> Awaitable[list[JobView]]: ...
def enqueued(
    job: Job[..., Any], connection: AsyncCallerConnection | SyncCallerConnection
) -> list[JobView] | Awaitable[list[JobView]]:
    """The jobs of this kind that have not ended, with their arguments, the oldest first.

    Looks through the test's own connection or session, so it sees what the open transaction has
    enqueued, in whichever queue. Awaited for an async one. At most the newest 1,000.
    """
    kind, schema = job.definition.kind, job.schema
    if is_async_connection(connection):  # which no type can say: both kinds have the same methods
        return async_enqueued(kind, async_driver_for(connection, schema=schema))  # type: ignore[arg-type]
    return sync_enqueued(kind, sync_driver_for(connection, schema=schema))  # type: ignore[arg-type]


def discard_jobs(app: App) -> None:
    """Cancel every job that has not ended and purge the dead letters, so that the next test begins with none.

    For a store that only tests use. It blocks, and closes the connections of `app.sync`.
    """
    with app.sync as client:
        while client.jobs.cancel_all(states=UNFINISHED, actor=_ACTOR, reason=_REASON):
            pass
        while dead := client.dead_letters.list(limit=MOST_JOBS):
            client.dead_letters.purge([job.job_id for job in dead], actor=_ACTOR, reason=_REASON)
