"""The part of a worker that runs Work: discovery and claims, permits and invocations, renewals."""

from onecommit.worker.work.runtime import WorkRuntime

__all__ = ["WorkRuntime"]
