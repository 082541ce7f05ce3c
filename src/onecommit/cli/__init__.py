"""The command line. One file for each command; this one lists them."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from onecommit.cli.callback import callback_commands
from onecommit.cli.capabilities import say_needs
from onecommit.cli.demo import demo
from onecommit.cli.dlq import dlq_commands
from onecommit.cli.doctor import doctor
from onecommit.cli.embedded import embedded_commands
from onecommit.cli.epoch import epoch_commands
from onecommit.cli.fence import fence
from onecommit.cli.job import job_commands
from onecommit.cli.lanes import lanes_commands
from onecommit.cli.migrate import migrate
from onecommit.cli.provision import provision
from onecommit.cli.queue import queue_commands
from onecommit.cli.ring import ring
from onecommit.cli.scope import scope_commands
from onecommit.cli.status import status
from onecommit.cli.work import work_commands
from onecommit.cli.worker import worker
from onecommit.cli.workers import workers
from onecommit.errors import InvalidArgument, OnecommitError
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
app.command()(workers)
app.command()(ring)
app.command()(provision)
app.command()(fence)
app.add_typer(epoch_commands, name="epoch")
app.add_typer(lanes_commands, name="lanes")
app.add_typer(job_commands, name="job")
app.add_typer(queue_commands, name="queue")
app.add_typer(dlq_commands, name="dlq")
app.add_typer(callback_commands, name="callback")
app.add_typer(work_commands, name="work")
app.add_typer(scope_commands, name="scope")
app.add_typer(embedded_commands, name="embedded")
say_needs(app)

_CONNECTION_STRING = re.compile(r"postgres(ql)?(\+\w+)?://|\bpassword\s*=", re.IGNORECASE)


def main() -> None:
    """The program `onecommit`: an error is a sentence and a remedy, never a traceback."""
    _refuse_connection_strings(sys.argv[1:])
    if sys.stdin is None:  # closed, as some service managers leave it: then it is empty
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115  for as long as the process lives
    try:
        app()
    except (OnecommitError, UnicodeEncodeError) as error:
        if isinstance(error, InvalidArgument | UnicodeEncodeError) and not _is_text(sys.argv[1:]):
            _end("an argument is not text in UTF-8. Check the terminal's encoding.", code=2)
        if isinstance(error, UnicodeEncodeError):
            raise
        _end(str(error), code=1)


def _refuse_connection_strings(arguments: list[str]) -> None:
    """Before an error could repeat one; what follows `embedded psql` is psql's."""
    if arguments[:1] != ["embedded"] and any(map(_CONNECTION_STRING.search, arguments)):
        _end(
            "an argument looks like a connection string, which every user of this machine could see."
            " Put it into ONECOMMIT_DSN or into a file for --dsn-file, and change the password.",
            code=2,
        )


def _is_text(arguments: list[str]) -> bool:
    """Whether all are; the path of a file need not be, so this is asked only after something was refused."""
    return not any("\ud800" <= each <= "\udfff" for each in "".join(arguments))


def _end(sentence: str, *, code: int) -> NoReturn:
    typer.echo(f"error: {sentence}", err=True)
    sys.exit(code)
