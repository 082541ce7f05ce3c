"""What the commands of operators share: who gives them, why and on which App."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, TypeVar
from uuid import uuid4

import typer

from onecommit.app.app import App
from onecommit.cli.printing import print_json
from onecommit.domain.identity import JobId
from onecommit.domain.job import JobResult

T = TypeVar("T")

NOT_DONE = 3
"""The exit code when a job was found in another state than the command wants."""
WorkIdArgument = Annotated[int, typer.Argument(metavar="WORK_ID", help="As `list` shows it.")]
JobIdArgument = Annotated[int, typer.Argument(metavar="JOB_ID", help="As `list` shows it.")]
JobIdsArgument = Annotated[
    list[int], typer.Argument(metavar="JOB_ID...", help="As `list` shows them.")
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
BeforeOption = Annotated[
    int | None, typer.Option("--before", help="The last id of the page before.")
]
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


def confirm(question: str) -> None:
    """Ask on standard error, and abort unless the answer is yes; nobody there is a no."""
    typer.confirm(question, abort=True, err=True)


def command_id(given: str | None) -> str:
    """The id that was given, or a new one."""
    return given or f"cli-{uuid4()}"


def print_answers(results: Mapping[JobId, JobResult], *, as_json: bool) -> None:
    """Print the answer for each job."""
    if as_json:
        print_json([{"job_id": job, "result": result} for job, result in results.items()])
    else:
        for job, result in results.items():
            typer.echo(f"{result}: {job}")


def end_of_jobs(results: Mapping[JobId, JobResult], wanted: JobResult, *, as_json: bool) -> None:
    """The same, and exit with 3 unless it is the wanted one for all."""
    print_answers(results, as_json=as_json)
    if any(result is not wanted for result in results.values()):
        raise typer.Exit(NOT_DONE)
