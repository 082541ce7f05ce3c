"""Nobody has put anything into pg_catalog, the one schema that routines find unqualified names in."""

from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import Check, Finding


def _findings(catalog: Catalog, _: Expected) -> Iterator[Finding]:
    for intruder in catalog.intruders:
        yield Finding(
            subject=intruder,
            problem="stands in pg_catalog, where a function or operator may be taken for PostgreSQL's own",
            remedy="Drop or revoke it as a superuser, after finding out who made it.",
        )


CHECK = Check(
    name="system_catalog",
    looks_at="functions, operators, types and tables in pg_catalog that PostgreSQL did not make",
    findings=_findings,
)
