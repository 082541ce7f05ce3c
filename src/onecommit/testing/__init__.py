"""What an application imports in its own tests: a store, what was enqueued, and a worker whose failures show.

Everything here runs on a real PostgreSQL; nothing is replaced.
"""

from onecommit.testing.jobs import discard_jobs, enqueued
from onecommit.testing.running import JobsFailed, run_jobs
from onecommit.testing.store import temporary_store

__all__ = ["JobsFailed", "discard_jobs", "enqueued", "run_jobs", "temporary_store"]
