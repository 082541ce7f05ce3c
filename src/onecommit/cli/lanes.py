"""`onecommit lanes add`: more lanes for more queues and priorities."""

from typing import Annotated

import typer

from onecommit import schema as manager
from onecommit.cli.database import DsnFileOption, SchemaOption, read_dsn

lanes_commands = typer.Typer(no_args_is_help=True, help="Extend the pool of lanes.")

CountOption = Annotated[int, typer.Option("--count", min=1, max=1023, help="How many to add.")]


@lanes_commands.command("add")
def add(
    *,
    count: CountOption = 32,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
) -> None:
    """Create more lanes; a queue takes one for each priority that it uses. Run it as the owner."""
    free = manager.add_lanes(read_dsn(dsn_file), count, schema=schema)
    typer.echo(f"{count} lanes added, {free} are free")
