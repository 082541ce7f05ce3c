"""Every routine has the signature, security mode and settings that its file has."""

from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected, ExpectedRoutine, flat
from onecommit.doctor.finding import REINSTALL, Check, Finding
from onecommit.doctor.rows import RoutineRow


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    for routine in catalog.routines:
        known = expected.routines.get(routine.name)
        if known is not None:
            for problem in _problems(routine, known, catalog.schema):
                yield Finding(subject=routine.signature, problem=problem, remedy=REINSTALL)


def _problems(routine: RoutineRow, known: ExpectedRoutine, schema: str) -> Iterator[str]:
    if flat(routine.arguments, schema) != known.arguments:
        yield f"takes other arguments than ({known.arguments})"
    if known.returns is not None and flat(routine.returns, schema) != known.returns:
        yield f"returns something else than {known.returns}"
    if routine.language != known.language:
        yield f"is written in {routine.language}, not in {known.language}"
    if routine.is_definer != known.is_definer:
        yield (
            "runs as its owner, not as its caller"
            if routine.is_definer
            else "runs as its caller, not as its owner"
        )
    if routine.attributes != known.attributes:
        yield f"is {_listed(routine.attributes)}, not {_listed(known.attributes)}"
    # Without it a definer would find its caller's objects first.
    for setting in sorted(known.config - routine.config):
        yield f"lacks the setting {setting}"
    for setting in sorted(routine.config - known.config):
        yield f"has the setting {setting}"


def _listed(attributes: frozenset[str]) -> str:
    return ", ".join(sorted(attributes)) or "volatile"


CHECK = Check(
    name="routine_headers",
    looks_at="arguments, result, language, SECURITY DEFINER, search_path and other settings of every routine",
    findings=_findings,
)
