"""Look at everything, change nothing."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from onecommit.doctor.catalog import Catalog, read_catalog
from onecommit.doctor.checks import CHECKS
from onecommit.doctor.expected import expected_of
from onecommit.doctor.finding import Finding, Severity
from onecommit.doctor.report import DoctorReport, Profile
from onecommit.doctor.vital_checks import VITAL_CHECKS
from onecommit.doctor.vitals import Vitals, read_vitals
from onecommit.errors import SchemaInconsistent
from onecommit.schema.bundle import Bundle, packaged_bundle
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.session import open_connection

_NAMED = 8
"""How many findings an error names; the report has them all."""


def examine(
    dsn: str = "",
    *,
    schema: str = DEFAULT_SCHEMA,
    strict: bool = False,
    drift_only: bool = False,
    bundle: Bundle | None = None,
) -> DoctorReport:
    """Compare a schema, its roles and their grants with what this package installs, then look at the store at work.

    Changes nothing; any login may, and is told what it could not see. Blocks; from asyncio use `to_thread`.
    drift_only: compare only.

    Raises SchemaError if the schema does not exist, StoreUnavailable if the database does not answer.
    """
    checked_schema_name(schema)
    with open_connection(dsn) as connection:
        catalog = read_catalog(connection, schema)
        report = judge(catalog, bundle or packaged_bundle(), strict=strict)
        if drift_only:
            return report
        vitals = read_vitals(connection, schema, open_another=lambda: open_connection(dsn))
    return with_vitals(report, vitals)


def require_strict(dsn: str = "", *, schema: str = DEFAULT_SCHEMA) -> None:
    """Raise SchemaInconsistent unless the store is sound, strict and seen whole; as `examine` otherwise.

    What goes on in the store is not looked at: a worker that starts may be what it waits for.
    """
    report = examine(dsn, schema=schema, strict=True, drift_only=True)
    problems = [f"{name}: {finding.subject} {finding.problem}" for name, finding in report.findings]
    problems += [f"not seen: {text}" for text in report.unseen]
    if problems:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        raise SchemaInconsistent(
            f"the store is not the strict one that was asked for: {'; '.join(problems[:_NAMED])}{more}",
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


def with_vitals(report: DoctorReport, vitals: Vitals) -> DoctorReport:
    """The report with the verdict of every check of the store at work."""
    found = [(check.name, finding) for check in VITAL_CHECKS for finding in check.findings(vitals)]
    return replace(
        report,
        checks=(*report.checks, *(check.name for check in VITAL_CHECKS)),
        findings=(*report.findings, *_of(Severity.FINDING, found)),
        warnings=_of(Severity.WARNING, found),
        information=_of(Severity.INFORMATION, found),
        unseen_at_work=tuple(
            f"{', '.join(what for what, _ in named)}: {why}"
            for why, named in groupby(vitals.unseen, key=lambda each: each[1])
        ),
    )


def _of(
    severity: Severity, found: Sequence[tuple[str, Finding]]
) -> tuple[tuple[str, Finding], ...]:
    return tuple((name, finding) for name, finding in found if finding.severity is severity)
