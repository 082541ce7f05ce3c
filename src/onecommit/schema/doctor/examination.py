"""Look at everything, change nothing."""

from onecommit.errors import SchemaInconsistent
from onecommit.schema.bundle import Bundle, packaged_bundle
from onecommit.schema.doctor.catalog import Catalog, read_catalog
from onecommit.schema.doctor.checks import CHECKS
from onecommit.schema.doctor.expected import expected_of
from onecommit.schema.doctor.report import DoctorReport, Profile
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.session import open_connection


def examine(
    dsn: str = "",
    *,
    schema: str = DEFAULT_SCHEMA,
    strict: bool = False,
    bundle: Bundle | None = None,
) -> DoctorReport:
    """Compare a schema, its roles and their grants with what this package installs; read-only, any login may.

    Blocks; from asyncio use `to_thread`. Raises SchemaError if the schema does not exist, StoreUnavailable if the
    database does not answer.
    """
    checked_schema_name(schema)
    with open_connection(dsn) as connection:
        catalog = read_catalog(connection, schema)
    return judge(catalog, bundle or packaged_bundle(), strict=strict)


def require_strict(dsn: str = "", *, schema: str = DEFAULT_SCHEMA) -> None:
    """Raise SchemaInconsistent unless the store is sound, strict and seen whole; as `examine` otherwise."""
    report = examine(dsn, schema=schema, strict=True)
    problems = [f"{name}: {finding.subject} {finding.problem}" for name, finding in report.findings]
    problems += [f"not seen: {text}" for text in report.unseen]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise SchemaInconsistent(
            f"the store is not the strict one that was asked for: {problems[0]}{more}",
            remedy="Run `onecommit doctor --strict` for all findings and what to do about them.",
        )


def judge(catalog: Catalog, bundle: Bundle, *, strict: bool) -> DoctorReport:
    """The verdict of every check."""
    expected = expected_of(bundle, schema=catalog.schema)
    found = [
        (check.name, finding) for check in CHECKS for finding in check.findings(catalog, expected)
    ]
    return DoctorReport(
        schema=catalog.schema,
        profile=Profile.SINGLE if any(finding.strict for _, finding in found) else Profile.STRICT,
        checks=tuple(check.name for check in CHECKS),
        findings=tuple((name, finding) for name, finding in found if strict or not finding.strict),
        unseen=catalog.unseen,
    )
