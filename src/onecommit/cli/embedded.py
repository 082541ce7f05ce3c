"""`onecommit embedded`: a local PostgreSQL that stays until it is stopped."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from onecommit.embedded import EmbeddedPostgres, Server, ServerNotRunning, default_data_dir
from onecommit.embedded.account import ServerAccount
from onecommit.embedded.binaries import Binaries
from onecommit.errors import InvalidArgument

NOT_RUNNING = 3

embedded_commands = typer.Typer(
    no_args_is_help=True,
    help="Run a local PostgreSQL for development and tests.",
)

DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="ONECOMMIT_EMBEDDED_DIR",
        help="Where its data is. [default: .onecommit/postgresql in this directory]",
    ),
]
BinDirOption = Annotated[
    Path | None,
    typer.Option(
        "--bin-dir", help="PostgreSQL programs to use. [default: those installed with this package]"
    ),
]
DatabaseOption = Annotated[str, typer.Option("--database", "-d", help="The database's name.")]


@embedded_commands.command()
def start(
    *,
    data_dir: DataDirOption = None,
    bin_dir: BinDirOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A line of postgresql.conf; repeatable."),
    ] = None,
    print_dsn: Annotated[
        bool,
        typer.Option("--print-dsn", help="Print the DSN, password included, on standard output."),
    ] = False,
) -> None:
    """Start the server, or find it running; it stays until `stop`."""
    directory = data_dir or default_data_dir()
    server = Server.find(directory) or _start(directory, bin_dir, settings or [])
    _say_where(server, data_dir)
    if print_dsn:
        typer.echo(server.dsn())


@embedded_commands.command()
def stop(
    *,
    data_dir: DataDirOption = None,
    mode: Annotated[
        Literal["fast", "immediate"],
        typer.Option(help="fast: disconnect everybody, checkpoint. immediate: as in a crash."),
    ] = "fast",
) -> None:
    """Stop the server and wait until it is gone; the data stays."""
    directory = data_dir or default_data_dir()
    server = Server.find(directory)
    if server is None:
        typer.echo(f"no server runs on {directory}", err=True)
        return
    server.stop(mode)
    typer.echo(f"stopped; the data stays in {directory}", err=True)


@embedded_commands.command()
def status(
    *,
    data_dir: DataDirOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say whether the server runs, and where; exit code 3 if it does not."""
    directory = data_dir or default_data_dir()
    server = Server.find(directory)
    if as_json:
        typer.echo(json.dumps(_facts(directory, server)))
    elif server is None:
        typer.echo(f"no server runs on {directory}")
    else:
        typer.echo(_sentence(server))
    raise typer.Exit(0 if server else NOT_RUNNING)


@embedded_commands.command()
def dsn(
    *,
    data_dir: DataDirOption = None,
    database: DatabaseOption = "postgres",
) -> None:
    """Print the running server's DSN, password included."""
    typer.echo(_running(data_dir).dsn(database))


@embedded_commands.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def psql(
    context: typer.Context,
    *,
    data_dir: DataDirOption = None,
    bin_dir: BinDirOption = None,
    database: DatabaseOption = "postgres",
) -> None:
    """Open psql on the running server; what follows `--` is passed to psql."""
    server = _running(data_dir)
    program = Binaries.find(bin_dir, account=ServerAccount.choose()).program("psql")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PG")
    } | server.connection_environment(database)
    sys.stdout.flush()
    os.execve(program, [str(program), *context.args], environment)  # noqa: S606 - psql takes our place


def _start(directory: Path, bin_dir: Path | None, settings: list[str]) -> Server:
    lines = dict(_name_and_value(line) for line in settings)
    return EmbeddedPostgres(directory, bin_dir=bin_dir, settings=lines).start(detached=True).server


def _name_and_value(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise InvalidArgument("--set wants NAME=VALUE", field="--set")
    return name.strip(), value.strip()


def _running(data_dir: Path | None) -> Server:
    directory = data_dir or default_data_dir()
    server = Server.find(directory)
    if server is None:
        raise ServerNotRunning(f"no server runs on {directory}")
    return server


def _sentence(server: Server) -> str:
    return (
        f"PostgreSQL {server.major} runs on 127.0.0.1, port {server.port},"
        f" with its data in {server.directory.path}"
    )


def _say_where(server: Server, data_dir: Path | None) -> None:
    """On standard error, so that standard output holds the DSN alone when that is asked for."""
    option = f" --data-dir {data_dir}" if data_dir else ""
    typer.echo(_sentence(server), err=True)
    typer.echo(f'  use it:   export ONECOMMIT_DSN="$(onecommit embedded dsn{option})"', err=True)
    typer.echo(f"  stop it:  onecommit embedded stop{option}", err=True)


def _facts(directory: Path, server: Server | None) -> dict[str, object]:
    if server is None:
        return {"running": False, "data_dir": str(directory)}
    return {
        "running": True,
        "data_dir": str(server.directory.path),
        "major": server.major,
        "pid": server.pid,
        "port": server.port,
        "socket_directory": str(server.record.socket_directory),
    }
