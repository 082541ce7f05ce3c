"""`onecommit job`: look at jobs without their arguments, say why one does not run, and cancel."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from onecommit.app.app import App
from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import ActorOption, DsnFileOption, SchemaOption
from onecommit.cli.operating import (
    BeforeOption,
    JobIdArgument,
    JsonOption,
    LimitOption,
    ReasonOption,
    YesOption,
    confirm,
    end_of_jobs,
    print_answers,
    run,
)
from onecommit.cli.printing import job_fields, print_fields, print_jobs, print_json, text_of
from onecommit.domain.identity import JobId
from onecommit.domain.job import JobResult, JobState, JobView
from onecommit.domain.job_reason import reasons
from onecommit.errors import StateRefused
from onecommit.schema import DEFAULT_SCHEMA

job_commands = typer.Typer(
    no_args_is_help=True, help="Look at jobs, see why one does not run, cancel."
)

QueueOption = Annotated[str | None, typer.Option("--queue", help="Only of this queue.")]
KindOption = Annotated[str | None, typer.Option("--kind", help="Only of this kind.")]
_CANCEL = "onecommit job cancel {0} --reason '...'"
_NEXT = {
    JobState.BLOCKED: _CANCEL,
    JobState.SCHEDULED: _CANCEL,
    JobState.READY: _CANCEL,
    JobState.RUNNING: _CANCEL,
    JobState.WAITING: _CANCEL,
    JobState.DEAD: "onecommit dlq retry {0} --reason '...'",
}


@job_commands.command("list")
def list_jobs(
    *,
    state: Annotated[JobState | None, typer.Option("--state", help="Only in this state.")] = None,
    queue: QueueOption = None,
    kind: KindOption = None,
    limit: LimitOption = 100,
    before: BeforeOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs without their arguments, the newest first."""
    found = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.jobs.list(
            state=state, queue=queue, kind=kind, limit=limit, before=before
        ),
    )
    print_jobs(found, as_json=as_json)


@job_commands.command("show")
def show(
    job_id: JobIdArgument,
    *,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one job, why it stands where it stands, and the command that is possible."""
    job, why = run(
        open_app(app, schema=schema, dsn_file=dsn_file), lambda opened: _examine(opened, job_id)
    )
    shown = _shown(job)
    if as_json:
        print_json({"job": shown, "why": why})
        return
    print_fields(shown)
    for sentence in why:
        typer.echo(f"why: {sentence}")
    if job.state in _NEXT:
        typer.echo(f"next: {_NEXT[job.state].format(job.job_id)}")


@job_commands.command("cancel")
def cancel(
    job_ids: Annotated[
        list[int] | None, typer.Argument(metavar="[JOB_ID...]", help="As `list` shows them.")
    ] = None,
    *,
    actor: ActorOption,
    reason: ReasonOption,
    queue: QueueOption = None,
    kind: KindOption = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Only with this tag; repeat it for jobs that have them all."),
    ] = None,
    state: Annotated[
        list[JobState] | None,
        typer.Option("--state", help="Only in this state; repeat it for more."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="At most so many of those.")
    ] = 1000,
    preview: Annotated[bool, typer.Option("--preview", help="Only show which.")] = False,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """End jobs that have not finished: those that are named, or the newest of a queue, kind, tag or state.

    What follows them is enqueued if --app registers it. Exit code 3 if one that was named had ended.
    """
    selection: dict[str, Any] = {"queue": queue, "kind": kind, "tags": tag, "states": state}
    # An empty text is a name that no job has, never leave to take them all.
    asked = {name: value for name, value in selection.items() if value not in (None, [])}
    if bool(job_ids) is bool(asked) or (job_ids and preview):
        message = "name jobs by their ids, or say which by --queue, --kind, --tag or --state"
        raise typer.BadParameter(message, param_hint="JOB_ID...")
    if asked and not (preview or yes):
        confirm(f"Cancel up to {limit} jobs ({_in_words(asked)})?")

    async def operate(opened: App) -> Mapping[JobId, JobResult]:
        if job_ids:
            return await opened.jobs.cancel_many(job_ids, actor=actor, reason=reason)
        return await opened.jobs.cancel_all(
            **asked, actor=actor, reason=reason, limit=limit, preview=preview
        )

    results = run(open_app(app, schema=schema, dsn_file=dsn_file), operate)
    if job_ids:
        end_of_jobs(results, JobResult.CANCELLED, as_json=as_json)
    elif preview or as_json:
        print_answers(results, as_json=as_json)
    else:
        _print_counts(results, limit=limit)


def _in_words(asked: Mapping[str, Any]) -> str:
    words = {
        name: value if isinstance(value, str) else ", ".join(value) for name, value in asked.items()
    }
    return "; ".join(f"{name} {text_of(value)}" for name, value in words.items())


def _print_counts(results: Mapping[JobId, JobResult], *, limit: int) -> None:
    for result, count in Counter(results.values()).items():
        typer.echo(f"{result}: {count} jobs")
    if not results:
        typer.echo("no such job")
    elif len(results) == limit:
        typer.echo(f"there may be more: these are as many as --limit {limit} allows")


async def _examine(opened: App, job_id: int) -> tuple[JobView, list[str]]:
    job = await opened.jobs.get(job_id)
    if job is None:
        raise StateRefused(
            "the store knows no such job",
            remedy="It may have ended so long ago that its history is gone.",
        )
    queues = {each.queue: each for each in await opened.queues.list()}
    parent = None
    if job.state is JobState.BLOCKED and job.parent_id is not None:
        parent = await opened.jobs.get(job.parent_id)
    return job, reasons(
        job,
        now=datetime.now(UTC),
        queue=queues.get(job.queue),
        workers=await opened.workers.list(),
        parent=parent,
    )


def _shown(job: JobView) -> dict[str, Any]:
    error = job.detail.get("type") if isinstance(job.detail, dict) else None
    return {**job_fields(job), "exception": error}
