"""`onecommit migrate`: bring the schema to this package's version, or print the SQL that does."""

import getpass
from typing import Annotated

import typer

from onecommit import schema as manager
from onecommit.cli.database import (
    DsnFileOption,
    SchemaOption,
    StoreIdOption,
    WaitOption,
    patience,
    read_dsn,
    shown_progress,
)
from onecommit.cli.epoch import print_identity

ScriptOption = Annotated[
    bool, typer.Option("--script", help="Print the SQL instead; needs no database.")
]
FromOption = Annotated[
    int, typer.Option("--from", min=0, help="With --script: the installed version, 0 for none.")
]
InitOption = Annotated[
    bool, typer.Option("--init", help="Activate a runtime epoch too if there is none.")
]
ActorOption = Annotated[
    str,
    typer.Option(
        "--actor", envvar=["ONECOMMIT_ACTOR", "USER"], help="With --init: who activates the epoch."
    ),
]
ReasonOption = Annotated[str, typer.Option("--reason", help="With --init: why.")]
ReinstallOption = Annotated[
    bool, typer.Option("--reinstall-routines", help="Overwrite routines that were changed by hand.")
]


def migrate(
    *,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    store_id: StoreIdOption = None,
    script: ScriptOption = False,
    from_version: FromOption = 0,
    init: InitOption = False,
    actor: ActorOption = "",
    reason: ReasonOption = "first migration",
    reinstall_routines: ReinstallOption = False,
    wait: WaitOption = 60,
) -> None:
    """Create the schema or bring it to this version; do nothing if that is done already."""
    with shown_progress():
        if script:
            typer.echo(manager.script(from_version, schema=schema), nl=False)
            return
        if init:  # before the migration, which would stay
            actor = actor or getpass.getuser()
            manager.checked_who(actor, reason)
        dsn = read_dsn(dsn_file)
        report = manager.apply(
            dsn,
            schema=schema,
            store_id=store_id,
            reinstall_routines=reinstall_routines,
            patience=patience(wait),
        )
        typer.echo(_summary(report))
        if init:
            epoch = manager.ensure_epoch(
                dsn,
                schema=schema,
                store_id=report.store_id,
                actor=actor,
                reason=reason,
                patience=patience(wait),
            )
            print_identity(epoch)


def _summary(report: manager.SchemaReport) -> str:
    changes = [f"applied {version:04}" for version in report.applied_versions]
    if report.routines_installed:
        changes.append("installed the routines")
    what = ", ".join(changes) or "nothing to do"
    return f'schema "{report.schema}": {report.reason} ({what})'
