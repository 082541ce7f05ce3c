"""`onecommit doctor`: is the database what this package installs, and can nobody do more than he should?"""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from onecommit import schema as manager
from onecommit.cli.database import DsnFileOption, SchemaOption, read_dsn
from onecommit.errors import OnecommitError
from onecommit.schema.doctor import DoctorReport, examine

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


def doctor(
    *,
    strict: StrictOption = False,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for drift and for rights too many, and change nothing: exit code 0 sound, 1 findings, 3 could not look."""
    try:
        report = examine(read_dsn(dsn_file), schema=schema, strict=strict)
    except OnecommitError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(COULD_NOT_LOOK) from error
    typer.echo(_as_json(report) if as_json else _as_text(report))
    if report.findings:
        raise typer.Exit(FINDINGS)
    if strict and report.unseen:
        raise typer.Exit(COULD_NOT_LOOK)


def _as_json(report: DoctorReport) -> str:
    findings = [{"check": name, **asdict(finding)} for name, finding in report.findings]
    return json.dumps(
        {
            "schema": report.schema,
            "profile": report.profile,
            "checks": report.checks,
            "findings": findings,
            "unseen": report.unseen,
        }
    )


def _as_text(report: DoctorReport) -> str:
    lines = [
        f"schema        {report.schema}",
        f"profile       {report.profile}",
        f"checks        {len(report.checks)}",
        f"findings      {len(report.findings) or 'none'}",
    ]
    lines += (f"not seen      {text}" for text in report.unseen)
    lines += (f"{name}: {finding.subject} {finding.problem}" for name, finding in report.findings)
    if report.remedies:
        lines += ["", "What you can do (nothing was changed):"]
        lines += (f"- {remedy}" for remedy in report.remedies)
    return "\n".join(lines)
