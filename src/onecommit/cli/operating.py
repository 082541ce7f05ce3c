"""What the commands of operators share: who gives them and why, and how an answer is printed."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from uuid import uuid4

import msgspec
import typer

from onecommit.app.app import App

T = TypeVar("T")

WorkIdArgument = Annotated[int, typer.Argument(metavar="WORK_ID", help="As `list` shows it.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; kept with the command.")]
CommandIdOption = Annotated[
    str | None,
    typer.Option(
        "--command-id",
        help="Names the command, so that a repeat does nothing. [default: a new one, printed]",
    ),
]
RevisionOption = Annotated[
    int,
    typer.Option("--revision", help="As `show` prints it: refused if the Work has moved since."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def run(app: App, operate: Callable[[App], Awaitable[T]]) -> T:
    """Do it on the open App, and close it."""

    async def inside() -> T:
        async with app:
            return await operate(app)

    return asyncio.run(inside())


def command_id(given: str | None) -> str:
    """The id that was given, or a new one."""
    return given or f"cli-{uuid4()}"


def print_json(value: Any) -> None:
    """Views and results as JSON: times in ISO 8601, digests in hexadecimal."""
    plain = msgspec.to_builtins(value, builtin_types=(bytes,))
    typer.echo(json.dumps(plain, default=bytes.hex, indent=2))


def print_result(result: Any, *, command: str, as_json: bool) -> None:
    """What a command did, and the id to repeat it under."""
    fields = msgspec.to_builtins(result)
    if as_json:
        print_json({**fields, "command_id": command})
        return
    outcome = fields.pop("outcome")
    known = ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)
    typer.echo(f"{outcome}: {known} (command {command})")
