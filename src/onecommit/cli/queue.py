"""`onecommit queue`: what lies in the queues, who serves them, and what operators decide about one."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated

import typer

from onecommit.app.app import App
from onecommit.app.async_client import AsyncQueues
from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import ActorOption, DsnFileOption, SchemaOption
from onecommit.cli.operating import JsonOption, ReasonOption, run
from onecommit.cli.printing import print_fields, print_json, print_table, print_views, text_of
from onecommit.domain.queue import QueueFinalization, QueueView
from onecommit.domain.worker import WorkerView
from onecommit.errors import StateRefused
from onecommit.schema import DEFAULT_SCHEMA

queue_commands = typer.Typer(
    no_args_is_help=True, help="Look at queues, pause them, decide about caller-owned completion."
)

QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="As `list` shows it.")]
_COLUMNS = (
    "queue", "paused", "ready", "running", "scheduled", "blocked", "dead", "lanes", "caller_owned",
)  # fmt: skip
_WORKERS = ("worker", "name", "started_at", "heartbeat_at", "ended_at")


@queue_commands.command("list")
def list_queues(
    *,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every queue and what lies in it."""
    found = run(
        open_app(app, schema=schema, dsn_file=dsn_file), lambda opened: opened.queues.list()
    )
    print_views(found, _COLUMNS, as_json=as_json)


@queue_commands.command("show")
def show(
    queue: QueueArgument,
    *,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one queue, who keeps it from caller-owned completion, and the workers that serve it."""

    async def read(opened: App) -> tuple[QueueView, QueueFinalization | None, list[WorkerView]]:
        found = {each.queue: each for each in await opened.queues.list()}
        if queue not in found:
            raise StateRefused("there is no such queue", remedy="`onecommit queue list` shows all.")
        finalization = {each.queue: each for each in await opened.queues.finalization()}
        serving = [each for each in await opened.workers.list() if each.serves(queue)]
        return found[queue], finalization.get(queue), serving

    view, finalization, serving = run(open_app(app, schema=schema, dsn_file=dsn_file), read)
    fields = asdict(view)
    if finalization is not None:
        fields |= {
            "disabled": finalization.disabled,
            "waiting_for": list(finalization.waiting_for),
        }
    if as_json:
        workers = [{name: getattr(each, name) for name in _WORKERS} for each in serving]
        print_json({"queue": fields, "workers": workers})
        return
    if "waiting_for" in fields:
        fields["waiting_for"] = ", ".join(fields["waiting_for"]) or None
    print_fields(fields)
    print_table(serving, _WORKERS)


def _decision(
    decide: Callable[..., Awaitable[None]], outcome: str, says: str
) -> Callable[..., None]:
    """A command that changes one queue, by a method of `app.queues`."""

    def command(
        queue: QueueArgument,
        *,
        actor: ActorOption,
        reason: ReasonOption,
        schema: SchemaOption = DEFAULT_SCHEMA,
        dsn_file: DsnFileOption = None,
        app: AppOption = None,
        as_json: JsonOption = False,
    ) -> None:
        run(
            open_app(app, schema=schema, dsn_file=dsn_file),
            lambda opened: decide(opened.queues, queue, actor=actor, reason=reason),
        )
        if as_json:
            print_json({"queue": queue, "outcome": outcome})
        else:
            typer.echo(f"{outcome}: {text_of(queue)}")

    command.__doc__ = says
    return command


queue_commands.command("pause")(
    _decision(
        AsyncQueues.pause,
        "paused",
        "Start no further job of the queue; what runs goes on, and jobs are still accepted.",
    )
)
queue_commands.command("resume")(
    _decision(AsyncQueues.resume, "resumed", "Start jobs of the queue again.")
)
queue_commands.command("disable-caller-owned")(
    _decision(
        AsyncQueues.disable_caller_owned,
        "disabled",
        "Refuse caller-owned completion in the queue until it is allowed again.",
    )
)
queue_commands.command("allow-caller-owned")(
    _decision(
        AsyncQueues.allow_caller_owned,
        "allowed",
        "Let the workers enable caller-owned completion again, at once if none of them lacks it.",
    )
)
