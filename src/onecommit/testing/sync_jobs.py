# Generated from async_jobs.py by tools/generate_sync.py: edit that file, then `make sync`.
"""Looking through the connection of a test."""

from onecommit.calls.views import get_job, list_jobs
from onecommit.domain.job import UNFINISHED, JobView
from onecommit.drivers.driver import SyncDriver

MOST_JOBS = 1_000
"""As many as one call lists."""


def sync_enqueued(kind: str, driver: SyncDriver) -> list[JobView]:
    """The newest jobs of the kind that have not ended, the oldest of them first."""
    call = list_jobs(state=None, queue=None, kind=kind, limit=MOST_JOBS, before=None)
    listed = [job.job_id for job in driver.run(call) if job.state in UNFINISHED]
    found = [driver.run(get_job(job_id)) for job_id in reversed(listed)]
    return [job for job in found if job is not None]
