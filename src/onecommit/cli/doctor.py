"""`onecommit doctor`: is the database what this package installs, and can nobody do more than he should?"""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from onecommit import schema as manager
from onecommit.cli.database import DsnFileOption, SchemaOption, read_dsn
from onecommit.doctor import DoctorReport, Finding, examine
from onecommit.errors import OnecommitError

FORMAT = 1
"""Of the JSON: keys may be added; when one changes its meaning or goes, this is raised."""
FINDINGS = 1
COULD_NOT_LOOK = 3
"""The exit code when there is no verdict; with --strict also when a part of it is missing."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict", help="Ask for the strict profile: a bounded owner that nobody can log in as."
    ),
]
DriftOption = Annotated[
    bool,
    typer.Option(
        "--drift-only", help="Only compare with what this package installs; leave out what goes on."
    ),
]


def doctor(
    *,
    strict: StrictOption = False,
    drift_only: DriftOption = False,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for drift, for rights too many and for what is stuck, and change nothing.

    Exit codes: 0 without a finding, warnings or not, 1 with findings, 3 without a verdict.
    """
    try:
        dsn = read_dsn(dsn_file)
        report = examine(dsn, schema=schema, strict=strict, drift_only=drift_only)
    except OnecommitError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(COULD_NOT_LOOK) from error
    typer.echo(_as_json(report) if as_json else _as_text(report))
    if report.findings:
        raise typer.Exit(FINDINGS)
    if strict and report.unseen:
        raise typer.Exit(COULD_NOT_LOOK)


def _as_json(report: DoctorReport) -> str:
    return json.dumps(
        {
            "format": FORMAT,
            "schema": report.schema,
            "profile": report.profile,
            "checks": report.checks,
            "findings": _entries(report.findings),
            "warnings": _entries(report.warnings),
            "information": _entries(report.information),
            "unseen": report.unseen,
            "unseen_at_work": report.unseen_at_work,
        }
    )


def _entries(found: Sequence[tuple[str, Finding]]) -> list[dict[str, Any]]:
    return [
        {
            "check": name,
            "subject": finding.subject,
            "problem": finding.problem,
            "remedy": finding.remedy,
            "strict": finding.strict,
        }
        for name, finding in found
    ]


def _as_text(report: DoctorReport) -> str:
    lines = [
        f"schema        {report.schema}",
        f"profile       {report.profile}",
        f"checks        {len(report.checks)}",
        f"findings      {len(report.findings) or 'none'}",
        f"warnings      {len(report.warnings) or 'none'}",
    ]
    lines += (f"not seen      {text}" for text in (*report.unseen, *report.unseen_at_work))
    for kind, found in (
        ("finding", report.findings),
        ("warning", report.warnings),
        ("information", report.information),
    ):
        lines += (f"{kind}: {name}: {each.subject} {each.problem}" for name, each in found)
    if report.remedies:
        lines += ["", "What you can do (nothing was changed):"]
        lines += (f"- {remedy}" for remedy in report.remedies)
    return "\n".join(lines)
