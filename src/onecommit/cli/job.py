"""`onecommit job`: look at jobs without their arguments, say why one does not run, and cancel."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from onecommit.app.app import App
from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import ActorOption, DsnFileOption, SchemaOption
from onecommit.cli.operating import (
    BeforeOption,
    JobIdArgument,
    JobIdsArgument,
    JsonOption,
    LimitOption,
    ReasonOption,
    end_of_jobs,
    run,
)
from onecommit.cli.printing import job_fields, print_fields, print_jobs, print_json
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
    job_ids: JobIdsArgument,
    *,
    actor: ActorOption,
    reason: ReasonOption,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """End jobs that have not finished; what follows them is enqueued if --app registers it. Exit code 3 if one had ended."""
    results = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.jobs.cancel_many(job_ids, actor=actor, reason=reason),
    )
    end_of_jobs(results, JobResult.CANCELLED, as_json=as_json)


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
