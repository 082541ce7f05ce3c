"""The server has connections left."""

from collections.abc import Iterator

from onecommit.schema.doctor.finding import Finding, Severity, VitalCheck
from onecommit.schema.doctor.vitals import Vitals

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


CHECK = VitalCheck(
    name="connections",
    looks_at="how many connections max_connections and the limits of database and role leave",
    findings=_findings,
)
