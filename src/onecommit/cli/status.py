"""`onecommit status`: the state of the schema."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from onecommit import schema as manager
from onecommit.cli.database import DsnFileOption, SchemaOption, read_dsn
from onecommit.domain.queue import QueueFinalization

NOT_COMPATIBLE = 3
"""The exit code of every state but `compatible`; 1 means that the state could not be read."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def status(
    *,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether this package can use the schema: exit code 0 if it can, 3 if not."""
    report = manager.status(read_dsn(dsn_file), schema=schema)
    typer.echo(_as_json(report) if as_json else _as_text(report))
    if report.state is not manager.SchemaState.COMPATIBLE:
        raise typer.Exit(NOT_COMPATIBLE)


def _as_json(report: manager.SchemaReport) -> str:
    fields = asdict(report)
    del fields["applied_versions"], fields["routines_installed"]  # what a migration did
    return json.dumps(fields, default=str)


def _as_text(report: manager.SchemaReport) -> str:
    lines = {
        "schema": report.schema,
        "state": f"{report.state} ({report.reason})",
        "version": f"{report.installed_version or 'none'}, this package has {report.bundled_version}",
        "routines": f"of {report.routines_from}" if report.routines_from else "none",
        "writers": f"from schema version {report.writer_min} on"
        if report.writer_min
        else "not known",
        "store id": report.store_id or "none",
        "epoch": report.active_epoch or "none: run `onecommit epoch init`",
        "caller-owned": "; ".join(map(_finalization, report.finalization)) or "no queue yet",
    }
    return "\n".join(f"{name:<14}{value}" for name, value in lines.items())


def _finalization(queue: QueueFinalization) -> str:
    if queue.enabled:
        return queue.queue
    if queue.disabled:
        return f"{queue.queue} (disabled by an operator)"
    if not queue.waiting_for:
        return f"{queue.queue} (soon)"
    return f"{queue.queue} (not while these old workers serve it: {', '.join(queue.waiting_for)})"
