"""`onecommit callback`: what waits for an answer from outside, and giving the answer that did not arrive."""

import sys
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import typer

from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import DsnFileOption, SchemaOption
from onecommit.cli.job import KindOption, QueueOption
from onecommit.cli.operating import NOT_DONE, BeforeOption, JsonOption, LimitOption, run
from onecommit.cli.printing import print_json, print_views
from onecommit.domain.callback import CallbackAnswer
from onecommit.schema import DEFAULT_SCHEMA

callback_commands = typer.Typer(
    no_args_is_help=True,
    help="See what waits for an answer from outside, and give one that did not arrive.",
)

IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="CALLBACK_ID",
        help="The id that was given away; - reads a line of standard input, which no other user sees.",
    ),
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; kept with the job.")]
_STANDARD_INPUT = "-"
_COLUMNS = (
    "job_id", "queue", "kind", "state", "attempt", "name", "awaited", "registered_at", "timeout_at",
)  # fmt: skip


@callback_commands.command("list")
def list_callbacks(
    *,
    job: Annotated[int | None, typer.Option("--job", help="Only of this job.")] = None,
    queue: QueueOption = None,
    kind: KindOption = None,
    limit: LimitOption = 100,
    before: BeforeOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what is not answered yet, of the newest jobs first; never the ids, which whoever has may answer."""
    found = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.callbacks.list(
            job_id=job, queue=queue, kind=kind, limit=limit, before=before
        ),
    )
    print_views(found, _COLUMNS, as_json=as_json)


@callback_commands.command("resume")
def resume(
    callback: IdArgument,
    *,
    payload: Annotated[
        typer.FileBinaryRead | None,
        typer.Option(
            "--payload", help="What the handler gets: a file with JSON, - for stdin; null without."
        ),
    ] = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the handler go on. Exit code 3 if that was not accepted."""
    named = _id_of(callback)
    given = _json_in(payload, option="--payload")
    answer = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.callbacks.resume(named, given),
    )
    _end(answer, as_json=as_json)


@callback_commands.command("complete")
def complete(
    callback: IdArgument,
    *,
    result: Annotated[
        typer.FileBinaryRead | None,
        typer.Option("--result", help="A file with JSON, - for stdin; null without."),
    ] = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Complete the job without its handler, which is stopped. Exit code 3 if that was not accepted."""
    named = _id_of(callback)
    given = _json_in(result, option="--result")
    answer = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.callbacks.complete(named, given),
    )
    _end(answer, as_json=as_json)


@callback_commands.command("fail")
def fail(
    callback: IdArgument,
    *,
    reason: ReasonOption,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send the job to the dead letters; its handler is stopped. Exit code 3 if that was not accepted."""
    named = _id_of(callback)
    answer = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.callbacks.fail(named, reason=reason),
    )
    _end(answer, as_json=as_json)


@callback_commands.command("retry")
def retry(
    callback: IdArgument,
    *,
    reason: ReasonOption,
    delay: Annotated[
        float, typer.Option("--delay-seconds", min=0, max=31_536_000, help="How long to wait.")
    ] = 0,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """End the attempt as failed, to be tried again while attempts are left. Exit code 3 if that was not accepted."""
    named = _id_of(callback)
    answer = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.callbacks.retry(named, reason=reason, delay=timedelta(seconds=delay)),
    )
    _end(answer, as_json=as_json)


def _id_of(given: str) -> str:
    if given != _STANDARD_INPUT:
        return given
    return sys.stdin.buffer.readline().decode(errors="replace").strip()


def _json_in(file: typer.FileBinaryRead | None, *, option: str) -> Any:
    if file is None:
        return None
    try:
        return msgspec.json.decode(file.read())
    except msgspec.DecodeError:
        message = "the file is not JSON"
    raise typer.BadParameter(message, param_hint=option)


def _end(answer: CallbackAnswer, *, as_json: bool) -> None:
    if as_json:
        print_json({"answer": answer})
    else:
        typer.echo(answer)
    if answer is not CallbackAnswer.ACCEPTED:
        raise typer.Exit(NOT_DONE)
