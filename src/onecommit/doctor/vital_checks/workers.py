"""Who runs jobs is alive, of the active epoch, and whoever is not has been rescued."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals, spoken
from onecommit.domain.worker import WorkerView

SILENT = timedelta(minutes=2)
"""Four times the window after which the default settings take a worker for dead."""


def _findings(vitals: Vitals) -> Iterator[Finding]:
    if vitals.health is None:
        return
    for worker in vitals.workers:
        problem = _problem(worker, vitals.health.at, vitals.epoch)
        if problem is not None:
            yield Finding(
                subject=f"worker {worker.worker} ({worker.name})",
                problem=problem,
                remedy="See that a worker leads: it takes the attempts of dead workers back, and forgets them.",
                severity=Severity.WARNING,
            )


def _problem(worker: WorkerView, now: datetime, epoch: int | None) -> str | None:
    if worker.ended_at is not None:
        since = now - worker.ended_at
        late = since >= SILENT
        return f"ended {spoken(since)} ago, and attempts of it are still open" if late else None
    silence = now - worker.heartbeat_at
    if silence >= SILENT:
        return f"has been silent for {spoken(silence)} and was not declared dead: its jobs wait for their rescue"
    if epoch is not None and worker.epoch != epoch:
        return f"runs under epoch {worker.epoch}, and {epoch} is active: everything that it does is refused"
    return None


CHECK = VitalCheck(
    name="workers",
    looks_at="heartbeats, epochs, and ended workers whose attempts are open",
    findings=_findings,
)
