"""`onecommit fence`: refuse the processes of older packages."""

from typing import Annotated

import typer

from onecommit import schema as manager
from onecommit.cli.database import (
    ActorOption,
    DsnFileOption,
    SchemaOption,
    StoreIdOption,
    WaitOption,
    patience,
    read_dsn,
    shown_progress,
)
from onecommit.cli.operating import ReasonOption, YesOption, confirm

WriterMinOption = Annotated[
    int | None,
    typer.Option(
        "--writer-min",
        min=1,
        help="The schema version that a package must know; the installed one by default.",
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="End older workers that are alive; their jobs are rescued.")
]


def fence(
    *,
    actor: ActorOption,
    reason: ReasonOption,
    writer_min: WriterMinOption = None,
    force: ForceOption = False,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    store_id: StoreIdOption = None,
    wait: WaitOption = 60,
    yes: YesOption = False,
) -> None:
    """Refuse every process of an older package from now on; workers of one that are alive prevent it."""
    if not yes:
        wanted = "the installed schema version" if writer_min is None else f"version {writer_min}"
        confirm(f"Refuse every process whose package does not know {wanted}?")
    with shown_progress():
        report = manager.fence_writers(
            read_dsn(dsn_file),
            writer_min=writer_min,
            force=force,
            actor=actor,
            reason=reason,
            schema=schema,
            store_id=store_id,
            patience=patience(wait),
        )
    typer.echo(f"writers from schema version {report.writer_min} on; older ones are refused")
    if report.ended:
        typer.echo(f"ended: {', '.join(report.ended)} ({report.rescued} jobs rescued)")
