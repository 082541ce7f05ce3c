"""Somebody leads: without a leader nothing is promoted, rescued or reclaimed."""

from collections.abc import Iterator
from datetime import timedelta

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals, spoken
from onecommit.domain.ring import StoreHealth

_LATE = timedelta(minutes=1)


def _findings(vitals: Vitals) -> Iterator[Finding]:
    health = vitals.health
    if health is None:
        return
    if health.promotion_due_at is not None and health.at - health.promotion_due_at >= _LATE:
        yield Finding(
            subject="scheduled jobs",
            problem=f"the first has been due for {spoken(health.at - health.promotion_due_at)}"
            f" and is not promoted; {_leader(health)}",
            remedy="Start a worker, or look at the log of the one that leads.",
            severity=Severity.WARNING,
        )
    alive = [worker for worker in vitals.workers if worker.ended_at is None]
    if alive and (health.leader_until is None or health.at - health.leader_until >= _LATE):
        yield Finding(
            subject="leader",
            problem=f"{len(alive)} workers are registered, but {_leader(health)}",
            remedy="See that workers have the capability `maintenance`, and look at their logs.",
            severity=Severity.WARNING,
        )


def _leader(health: StoreHealth) -> str:
    if health.leader_until is None:
        return "nobody has led yet"
    if health.is_led:
        return f"worker {health.leader} leads"
    return f"nobody has led for {spoken(health.at - health.leader_until)}"


CHECK = VitalCheck(
    name="maintenance",
    looks_at="the lease of the leader, and scheduled jobs whose time has passed",
    findings=_findings,
)
