"""What waits for a person."""

from collections.abc import Iterator

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals


def _findings(vitals: Vitals) -> Iterator[Finding]:
    for queue in vitals.dead_letters:
        yield Finding(
            subject=f"queue {queue.queue}",
            problem=f"has {queue.dead} dead letters, from {queue.first_at:%Y-%m-%d %H:%M} to"
            f" {queue.last_at:%Y-%m-%d %H:%M %Z}",
            remedy="`onecommit dlq list` names them; retry or purge them when their cause is known.",
            severity=Severity.INFORMATION,
        )
    for work in vitals.work:
        if work.state.startswith("suspended_"):
            yield Finding(
                subject="Work",
                problem=f"{work.items} items stand in {work.state}",
                remedy="`onecommit work list --needs-operator` names them.",
                severity=Severity.INFORMATION,
            )


CHECK = VitalCheck(
    name="needs_operator",
    looks_at="dead letters of each queue, and suspended Work",
    findings=_findings,
)
