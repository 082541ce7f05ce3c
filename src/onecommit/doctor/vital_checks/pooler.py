"""Whether a pooler stands between this DSN and the server, and in which mode."""

from collections.abc import Iterator

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vitals import Vitals


def _findings(vitals: Vitals) -> Iterator[Finding]:
    if not vitals.connection.is_pooled:
        return
    if vitals.connection.is_heard is False:
        yield Finding(
            subject="connection",
            problem="goes through a pooler in transaction or statement mode, through which no notice arrives",
            remedy="Give workers, `migrate` and `epoch` a direct connection; what only enqueues or completes may stay.",
            severity=Severity.WARNING,
        )
    else:
        yield Finding(
            subject="connection",
            problem="goes through a pooler in session mode",
            remedy="Nothing, except for `migrate` and `epoch`, which need a direct connection.",
            severity=Severity.INFORMATION,
        )


CHECK = VitalCheck(
    name="pooler", looks_at="whether a pooler answers, and in which mode", findings=_findings
)
