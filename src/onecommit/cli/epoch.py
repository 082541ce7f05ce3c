"""`onecommit epoch init` and `rotate`: activate a runtime epoch, or fence the processes of the old one."""

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
from onecommit.cli.operating import YesOption, confirm

epoch_commands = typer.Typer(
    no_args_is_help=True,
    help="Activate the runtime epoch, or rotate it after a restore or failover.",
)

ReasonOption = Annotated[str, typer.Option("--reason", help="Why; kept in the epoch history.")]
ExpectedOption = Annotated[
    int,
    typer.Option(
        "--expected",
        envvar="ONECOMMIT_EPOCH",
        help="The epoch that you expect to be active.",
    ),
]


@epoch_commands.command("init")
def init(
    *,
    actor: ActorOption,
    reason: ReasonOption,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    store_id: StoreIdOption = None,
    wait: WaitOption = 60,
) -> None:
    """Activate the first epoch of a store, once, and print what the deployment needs."""
    with shown_progress():
        report = manager.initialize_epoch(
            read_dsn(dsn_file),
            actor=actor,
            reason=reason,
            schema=schema,
            store_id=store_id,
            patience=patience(wait),
        )
    print_identity(report)


@epoch_commands.command("rotate")
def rotate(
    *,
    expected: ExpectedOption,
    actor: ActorOption,
    reason: ReasonOption,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    store_id: StoreIdOption = None,
    wait: WaitOption = 60,
    yes: YesOption = False,
) -> None:
    """Replace the active epoch: every process that was started with the old one is refused."""
    if not yes:
        confirm(f"Refuse every process of epoch {expected} from now on?")
    with shown_progress():
        report = manager.rotate_epoch(
            read_dsn(dsn_file),
            expected=expected,
            actor=actor,
            reason=reason,
            schema=schema,
            store_id=store_id,
            patience=patience(wait),
        )
    print_identity(report)


def print_identity(report: manager.EpochReport) -> None:
    """Print the two settings that every process of the deployment must be given."""
    typer.echo(f"ONECOMMIT_STORE_ID={report.store_id}")
    typer.echo(f"ONECOMMIT_EPOCH={report.epoch}")
