"""No routine, helper or trigger does what the protocol forbids itself: it would do so with the owner's rights."""

from collections.abc import Iterator

from onecommit.doctor.bodies import call_graph, prohibited, reached
from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import REINSTALL, Check, Finding


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    ways = _ways(catalog)
    for routine in catalog.routines:
        known = expected.routines.get(routine.name)
        dynamic = known is not None and known.is_dynamic
        for problem in prohibited(routine.body, catalog.schema, dynamic=dynamic):
            yield Finding(
                subject=routine.signature,
                problem=f"{problem} ({ways.get(routine.name, 'called by nobody else')})",
                remedy=REINSTALL,
            )


def _ways(catalog: Catalog) -> dict[str, str]:
    """How each routine is reached: from an operation that runs as its owner, from a trigger, or from any other."""
    graph = call_graph({r.name: r.body for r in catalog.routines}, catalog.schema)
    triggers = {routine.name for routine in catalog.routines if routine.returns == "trigger"}
    definers = {routine.name for routine in catalog.routines if routine.is_definer}
    roots = sorted(graph, key=lambda name: (name not in definers, name not in triggers, name))
    ways = dict.fromkeys(definers, "an operation that runs as its owner")
    ways |= dict.fromkeys(triggers, "a trigger")
    for root in roots:
        for name, path in reached(root, graph).items():
            if len(path) > 1:
                ways.setdefault(name, f"reached by {' → '.join(path)}")
    return ways


CHECK = Check(
    name="constructs",
    looks_at="SQL made at run time, unqualified and foreign names, settings, roles, DDL, transactions and files, in every"
    " routine and what it calls",
    findings=_findings,
)
