"""Every routine is installed once, with the body that the package has."""

from collections import Counter
from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import REINSTALL, Check, Finding

CLOCK = "store_now"


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    installed = Counter(routine.name for routine in catalog.routines)
    for name in sorted(expected.routines.keys() - installed.keys()):
        yield Finding(subject=f"{name}()", problem="is missing", remedy=REINSTALL)
    for routine in catalog.routines:
        known = expected.routines.get(routine.name)
        if known is None:
            yield Finding(
                subject=routine.signature,
                problem="is no routine of this release",
                remedy="Find out who made it; drop it, or keep it in a schema of its own.",
            )
        elif installed[routine.name] > 1:
            yield Finding(
                subject=routine.signature,
                problem="shares its name with another routine, so a call may reach the wrong one",
                remedy="Drop the one that is not in the SQL reference.",
            )
        elif routine.sha256 != known.sha256 and routine.name != CLOCK:
            yield Finding(
                subject=routine.signature,
                problem="has another body than the package",
                remedy=REINSTALL,
            )


CHECK = Check(
    name="routine_bodies",
    looks_at="the body of every routine, missing and foreign routines, overloads",
    findings=_findings,
)
