"""`onecommit scope`: look at a scope of Work, or disable it for good."""

from typing import Annotated

import msgspec
import typer

from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import ActorOption, DsnFileOption, SchemaOption
from onecommit.cli.operating import (
    CommandIdOption,
    JsonOption,
    ReasonOption,
    YesOption,
    command_id,
    confirm,
    run,
)
from onecommit.cli.printing import print_fields, print_json, print_result
from onecommit.errors import ScopeNotFound
from onecommit.schema import DEFAULT_SCHEMA

scope_commands = typer.Typer(
    no_args_is_help=True, help="Look at a scope of Work, or disable it for good."
)

ScopeArgument = Annotated[str, typer.Argument(metavar="SCOPE", help="The scope's name.")]


@scope_commands.command("show")
def show(
    scope: ScopeArgument,
    *,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show its generation, its state and how much of its Work has not ended."""
    view = run(
        open_app(app, schema=schema, dsn_file=dsn_file), lambda opened: opened.scopes.get(scope)
    )
    if view is None:
        raise ScopeNotFound("there is no such scope")
    if as_json:
        print_json(view)
        return
    print_fields(msgspec.structs.asdict(view))


@scope_commands.command("disable")
def disable(
    scope: ScopeArgument,
    *,
    generation: Annotated[
        int,
        typer.Option(
            "--generation",
            help="As `show` prints it: refused if it is another one.",
        ),
    ],
    actor: ActorOption,
    reason: ReasonOption,
    command: CommandIdOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Accept and run nothing of it any more. Work without an effect is canceled, other Work waits for evidence."""
    if not yes:
        confirm(f"Disable {scope} for good?")
    named = command_id(command)
    result = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.scopes.disable(
            scope, generation=generation, command_id=named, actor=actor, reason=reason
        ),
    )
    print_result(result, command=named, as_json=as_json)
