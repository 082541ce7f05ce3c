"""`onecommit provision --print`: the SQL that makes the roles of a store, for a review."""

from typing import Annotated

import typer

from onecommit import schema as manager
from onecommit.cli.database import SchemaOption
from onecommit.errors import InvalidArgument

PrintOption = Annotated[
    bool,
    typer.Option("--print", help="Print the SQL; nothing else is done, and no database is needed."),
]
RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="CAPABILITY=NAME",
        help="Name the role of a capability; repeat it for more.",
    ),
]
ProfileOption = Annotated[
    manager.Profile, typer.Option("--profile", help="single is for development and is not strict.")
]


def provision(
    *,
    print_: PrintOption = False,
    role: RoleOption = None,
    schema: SchemaOption = manager.DEFAULT_SCHEMA,
    profile: ProfileOption = manager.Profile.STRICT,
) -> None:
    """Print the SQL that creates the roles of a store and grants what each needs, to review and run."""
    if not print_:
        raise typer.BadParameter(
            "review the SQL and run it yourself: add --print", param_hint="--print"
        )
    typer.echo(manager.provision(_names(role or []), schema=schema, profile=profile), nl=False)


def _names(given: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for each in given:
        capability, equals, name = each.partition("=")
        if not equals:
            raise InvalidArgument("role: write it as CAPABILITY=NAME", field="role")
        if capability in names:
            raise InvalidArgument(f"role: {capability} is named twice", field="role")
        names[capability] = name
    return names
