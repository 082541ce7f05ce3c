"""The command line. One file for each command; this one lists them."""

import sys
from typing import Annotated

import typer

from onecommit.cli.demo import demo
from onecommit.cli.doctor import doctor
from onecommit.cli.embedded import embedded_commands
from onecommit.cli.epoch import epoch_commands
from onecommit.cli.lanes import lanes_commands
from onecommit.cli.migrate import migrate
from onecommit.cli.provision import provision
from onecommit.cli.scope import scope_commands
from onecommit.cli.status import status
from onecommit.cli.work import work_commands
from onecommit.cli.worker import worker
from onecommit.errors import OnecommitError
from onecommit.version import __version__

app = typer.Typer(
    name="onecommit",
    help="Durable work on PostgreSQL: your rows and the job's completion land in one commit.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # it would show local variables: DSNs, payloads
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print it and exit."
        ),
    ] = False,
) -> None:
    """Options before the command."""


# Every command, in the order of the help page.
app.command()(demo)
app.command()(worker)
app.command()(migrate)
app.command()(status)
app.command()(doctor)
app.command()(provision)
app.add_typer(epoch_commands, name="epoch")
app.add_typer(lanes_commands, name="lanes")
app.add_typer(work_commands, name="work")
app.add_typer(scope_commands, name="scope")
app.add_typer(embedded_commands, name="embedded")


def main() -> None:
    """The program `onecommit`: an error is a sentence and a remedy, never a traceback."""
    try:
        app()
    except OnecommitError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
