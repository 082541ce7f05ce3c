"""Notices arrive, and the server's queue of them is not about to be full."""

from collections.abc import Iterator

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals

_HALF = 0.5
_TENTH = 0.1


def _findings(vitals: Vitals) -> Iterator[Finding]:
    connection = vitals.connection
    # Silence behind a pooler is the pooler's mode.
    if connection.is_heard is False and not connection.is_pooled:
        yield Finding(
            subject="notices",
            problem="a notice that was sent over a direct connection did not come back: workers poll",
            remedy="Look for a proxy that drops them, and for a session that listens inside a long transaction.",
        )
    if connection.is_standby:
        yield Finding(
            subject="notices",
            problem="this server is a standby, so no notice was sent",
            remedy="Let the doctor look at the primary server.",
            severity=Severity.INFORMATION,
        )
    if connection.queue_usage >= _TENTH:
        severity = Severity.FINDING if connection.queue_usage >= _HALF else Severity.WARNING
        yield Finding(
            subject="notices",
            problem=f"the server's queue of notices is {connection.queue_usage:.0%} full; once it is, commits that notify fail",
            remedy="End the oldest transaction of a session that listens; its pid stands in the server's log.",
            severity=severity,
        )


CHECK = VitalCheck(
    name="notices",
    looks_at="a notice of our own that must come back, and how full the server's queue of notices is",
    findings=_findings,
)
