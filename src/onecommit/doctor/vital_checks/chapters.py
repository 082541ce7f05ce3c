"""The ring turns: there is a slot for the next chapter, and the oldest goes when its time is over."""

from collections.abc import Iterator
from datetime import timedelta

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals, spoken
from onecommit.domain.ring import StoreHealth

OVERDUE = timedelta(minutes=10)
"""The leader looks every ten seconds, and evacuates after its own time."""


def _findings(vitals: Vitals) -> Iterator[Finding]:
    health = vitals.health
    if health is None:
        return
    if health.is_stuck:
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
        problem=f"should have been reclaimed {spoken(late)} ago ({health.used} of {health.ring_size} slots are in use): "
        + ("; ".join(reasons) or "nothing that can be seen keeps it"),
        remedy="A queue without workers is evacuated by the leader, so are attempts that run for long; end a session that"
        " holds locks, and see that a worker leads.",
        severity=Severity.WARNING,
    )


def _late(health: StoreHealth) -> timedelta | None:
    due = health.reclaim_due_at
    late = health.at - due if due is not None else timedelta()
    return late if late >= OVERDUE else None


def _reasons(vitals: Vitals, health: StoreHealth) -> Iterator[str]:
    for pin in vitals.pins:
        yield pin.in_words()
    for pid in sorted(
        {lock.pid or 0 for lock in vitals.locks if lock.slot == health.oldest % health.ring_size}
    ):
        yield f"{vitals.session(pid)} holds locks on its tables"


CHECK = VitalCheck(
    name="chapters",
    looks_at="slots of the ring in use, a head that cannot be closed, an oldest chapter that is not reclaimed, and why",
    findings=_findings,
)
