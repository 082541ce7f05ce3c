"""`onecommit ring`: the chapters that hold the jobs, and what keeps the ring from turning."""

from dataclasses import asdict

import typer

from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import DsnFileOption, SchemaOption
from onecommit.cli.operating import JsonOption, run
from onecommit.cli.printing import print_fields, print_json, print_table
from onecommit.domain.ring import RingView
from onecommit.schema import DEFAULT_SCHEMA

_COLUMNS = ("chapter", "slot", "is_head", "below_tail", "opened_at", "closed_at", "bytes")


def ring(
    *,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the chapters that stand, their sizes, who tends them, and what holds back the oldest."""
    found = run(open_app(app, schema=schema, dsn_file=dsn_file), lambda opened: opened.ring.get())
    if as_json:
        print_json({**asdict(found), "obstacles": found.obstacles()})
    else:
        _print(found)


def _print(found: RingView) -> None:
    health = found.health
    print_fields(
        {
            "slots": f"{health.used} of {health.ring_size} in use",
            "head": health.head,
            "head_is_full": health.head_is_full,
            "oldest": health.oldest,
            "reclaim_due_at": health.reclaim_due_at,
            "leader": health.leader if health.is_led else "none",
            "leader_until": health.leader_until,
        }
    )
    print_table(found.chapters, _COLUMNS)
    for sentence in found.obstacles():
        typer.echo(f"why: {sentence}")
