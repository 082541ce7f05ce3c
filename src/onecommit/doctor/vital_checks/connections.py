"""The server has connections left, and enough for all workers at once."""

from collections.abc import Iterator

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals
from onecommit.domain.worker import WorkerView

_TENTH = 10


def _findings(vitals: Vitals) -> Iterator[Finding]:
    budget = vitals.budget
    if budget is not None and budget.free * _TENTH < budget.usable:
        yield Finding(
            subject="connections",
            problem=f"{budget.free} of {budget.usable} that this login may have are free",
            remedy="Make pools smaller or put a pooler before what enqueues, or raise max_connections or the role's limit.",
            severity=Severity.WARNING,
        )
    asked = sum(map(_connections, vitals.workers))
    if asked > vitals.connection.max_connections:
        yield Finding(
            subject="connections",
            problem=f"live workers may want {asked} at a time with their pools, and max_connections is"
            f" {vitals.connection.max_connections}",
            remedy="Run fewer workers, or lower the concurrency of queues and the pools, or raise max_connections.",
            severity=Severity.WARNING,
        )


def _connections(worker: WorkerView) -> int:
    """As it says of itself; others than ours may say nothing."""
    said = worker.info.get("connections") if worker.ended_at is None else None
    return said if isinstance(said, int) else 0


CHECK = VitalCheck(
    name="connections",
    looks_at="how many connections max_connections and the limits of database and role leave, and what live workers may want",
    findings=_findings,
)
