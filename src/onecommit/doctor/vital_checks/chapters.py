"""The ring turns: there is a slot for the next chapter, and the oldest goes when its time is over."""

from collections.abc import Iterator
from datetime import timedelta

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vital_rows import HealthRow
from onecommit.doctor.vitals import Vitals, spoken

OVERDUE = timedelta(minutes=10)
"""The leader looks every ten seconds, and evacuates after its own time."""


def _findings(vitals: Vitals) -> Iterator[Finding]:
    health = vitals.health
    if health is None:
        return
    used = health.head - health.oldest + 1
    if used >= health.ring_size and health.head_is_full:
        yield Finding(
            subject=f"chapter {health.head}",
            problem=f"is due to be closed, but all {health.ring_size} slots are in use: it grows until chapter"
            f" {health.oldest} is reclaimed",
            remedy=f"Remove what keeps chapter {health.oldest}. Nothing is lost meanwhile; disk is used.",
        )
    late = _late(health)
    if late is None:
        return
    reasons = list(_reasons(vitals, health))
    yield Finding(
        subject=f"chapter {health.oldest}",
        problem=f"should have been reclaimed {spoken(late)} ago ({used} of {health.ring_size} slots are in use): "
        + ("; ".join(reasons) or "nothing that can be seen keeps it"),
        remedy="A queue without workers is evacuated by the leader, so are attempts that run for long; end a session that"
        " holds locks, and see that a worker leads.",
        severity=Severity.WARNING,
    )


def _late(health: HealthRow) -> timedelta | None:
    due = health.reclaim_due_at
    late = health.at - due if due is not None else timedelta()
    return late if late >= OVERDUE else None


def _reasons(vitals: Vitals, health: HealthRow) -> Iterator[str]:
    for pin in vitals.pins:
        state = "claimed but not closed" if pin.claimed else "not claimed"
        jobs = ", ".join(map(str, pin.job_ids))
        yield f"{pin.attempts} attempts of queue {pin.queue} are {state} (jobs {jobs}, …)"
    for pid in sorted(
        {lock.pid or 0 for lock in vitals.locks if lock.slot == health.oldest % health.ring_size}
    ):
        yield f"{vitals.session(pid)} holds locks on its tables"


CHECK = VitalCheck(
    name="chapters",
    looks_at="slots of the ring in use, a head that cannot be closed, an oldest chapter that is not reclaimed, and why",
    findings=_findings,
)
