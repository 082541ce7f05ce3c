"""The protocol's clock is PostgreSQL's."""

from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.checks.routine_bodies import CLOCK
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import REINSTALL, Check, Finding


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    known = expected.routines[CLOCK]
    for routine in catalog.routines:
        if routine.name == CLOCK and routine.sha256 != known.sha256:
            yield Finding(
                subject=routine.signature,
                problem="is not clock_timestamp(): leases, deadlines and schedules follow another clock",
                remedy=f"{REINSTALL} Only tests replace this routine.",
            )


CHECK = Check(name="clock", looks_at="the body of store_now()", findings=_findings)
