"""How the commands print what they found and did."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onecommit.domain.job import JobView

_JOB_COLUMNS = (
    "job_id", "state", "queue", "priority", "kind", "attempt", "max_attempts", "code", "created_at",
    "run_at", "finished_at",
)  # fmt: skip


def print_json(value: Any) -> None:
    """Views and results as JSON: times in ISO 8601, digests in hexadecimal."""
    plain = msgspec.to_builtins(value, builtin_types=(bytes,))
    typer.echo(json.dumps(plain, default=bytes.hex, indent=2))


def print_result(result: Any, *, command: str, as_json: bool) -> None:
    """What a command did, and the id to repeat it under."""
    fields = msgspec.to_builtins(result)
    if as_json:
        print_json({**fields, "command_id": command})
        return
    outcome = fields.pop("outcome")
    known = ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)
    typer.echo(f"{outcome}: {known} (command {command})")


def job_fields(job: JobView) -> dict[str, Any]:
    """What anybody may see of a job: no arguments, options, progress or result, nor what an exception said."""
    fields = msgspec.structs.asdict(job)
    for name in ("args", "options", "progress", "detail"):
        del fields[name]
    return fields


def print_jobs(jobs: Sequence[JobView], *, as_json: bool) -> None:
    """A list of jobs."""
    if as_json:
        print_json([job_fields(job) for job in jobs])
    else:
        print_table(jobs, _JOB_COLUMNS)


def print_views(views: Any, names: tuple[str, ...], *, as_json: bool) -> None:
    """A list of views: as JSON whole, else these columns."""
    if as_json:
        print_json(views)
    else:
        print_table(views, names)


def print_table(rows: Any, names: tuple[str, ...]) -> None:
    """The rows under these names, as wide as their texts where nobody looks at a terminal."""
    table = Table(*names, box=box.SIMPLE)
    for row in rows:
        # Text, because a name may look like markup.
        table.add_row(*(Text(text_of(getattr(row, name))) for name in names))
    console = Console()
    Console(width=None if console.is_terminal else 250).print(table)


def text_of(value: object) -> str:
    """A value as a person reads it: nothing for None, times to the millisecond, no control characters."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    return "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(value)
    )


def print_fields(fields: Mapping[str, object]) -> None:
    """One line for each value that there is."""
    width = max(map(len, fields), default=0) + 2
    for name, value in fields.items():
        if value is not None:
            typer.echo(f"{name:<{width}}{text_of(value)}")
