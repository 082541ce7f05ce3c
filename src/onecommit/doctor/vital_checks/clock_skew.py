"""The server's clock, which alone counts, and the clock of this host agree."""

from collections.abc import Iterator
from datetime import timedelta

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals

_TOLERATED = timedelta(seconds=2)


def _findings(vitals: Vitals) -> Iterator[Finding]:
    skew = vitals.connection.skew
    if abs(skew) - vitals.connection.uncertainty > _TOLERATED:
        side = "ahead of" if skew > timedelta() else "behind"
        yield Finding(
            subject="clock",
            problem=f"the server's is {abs(skew).total_seconds():.1f} s {side} this host's: leases and schedules follow"
            " the server's, times that this host computes (a run time, a deadline) do not",
            remedy="Have both hosts set their clocks by NTP.",
            severity=Severity.WARNING,
        )


CHECK = VitalCheck(
    name="clock_skew",
    looks_at="the difference between the server's clock and this host's",
    findings=_findings,
)
