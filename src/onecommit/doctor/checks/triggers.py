"""The guards of Work are in place and at work; no other trigger or rule is."""

from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected, flat
from onecommit.doctor.finding import Check, Finding

_ORIGIN = "O"


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    found = {(trigger.table, trigger.name) for trigger in catalog.triggers}
    for table, name in sorted(expected.triggers.keys() - found):
        yield Finding(
            subject=f"{table}.{name}",
            problem="the trigger is missing",
            remedy="Create it as its migration does.",
        )
    for trigger in catalog.triggers:
        subject = f"{trigger.table}.{trigger.name}"
        known = expected.triggers.get((trigger.table, trigger.name))
        if trigger.is_rule:
            yield Finding(
                subject=subject,
                problem="a rule rewrites statements on this table",
                remedy="Drop the rule.",
            )
        elif known is None and not trigger.is_internal:
            yield Finding(
                subject=subject,
                problem="is no trigger of this release and runs inside the protocol's transactions",
                remedy="Drop the trigger; read changes by a query or through logical replication.",
            )
        elif known is not None and flat(trigger.definition, catalog.schema) != known:
            yield Finding(
                subject=subject,
                problem="is defined otherwise",
                remedy="Create it as its migration does.",
            )
        elif trigger.enabled != _ORIGIN:
            yield Finding(
                subject=subject,
                problem="is disabled, or does not fire in ordinary sessions",
                remedy="alter table … enable trigger …;",
            )


CHECK = Check(
    name="triggers", looks_at="triggers, foreign keys' own included, and rules", findings=_findings
)
