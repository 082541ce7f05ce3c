"""`onecommit dlq`: the dead letters, which jobs become that failed for good."""

import typer

from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import ActorOption, DsnFileOption, SchemaOption
from onecommit.cli.job import KindOption, QueueOption
from onecommit.cli.operating import (
    BeforeOption,
    JobIdsArgument,
    JsonOption,
    LimitOption,
    ReasonOption,
    YesOption,
    confirm,
    end_of_jobs,
    run,
)
from onecommit.cli.printing import print_jobs
from onecommit.domain.job import JobResult
from onecommit.schema import DEFAULT_SCHEMA

dlq_commands = typer.Typer(
    no_args_is_help=True, help="List, retry and purge jobs that failed for good."
)


@dlq_commands.command("list")
def list_dead(
    *,
    queue: QueueOption = None,
    kind: KindOption = None,
    limit: LimitOption = 100,
    before: BeforeOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead letters without their arguments, the newest first."""
    found = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.dead_letters.list(queue=queue, kind=kind, limit=limit, before=before),
    )
    print_jobs(found, as_json=as_json)


@dlq_commands.command("retry")
def retry(
    job_ids: JobIdsArgument,
    *,
    actor: ActorOption,
    reason: ReasonOption,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put jobs back into their queues with all their attempts. Exit code 3 if one was not."""
    results = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.dead_letters.retry(job_ids, actor=actor, reason=reason),
    )
    end_of_jobs(results, JobResult.RETRIED, as_json=as_json)


@dlq_commands.command("purge")
def purge(
    job_ids: JobIdsArgument,
    *,
    actor: ActorOption,
    reason: ReasonOption,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Delete dead letters for good. Exit code 3 if one was not found."""
    if not yes:
        confirm(f"Delete {len(job_ids)} dead letters for good?")
    results = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.dead_letters.purge(job_ids, actor=actor, reason=reason),
    )
    end_of_jobs(results, JobResult.PURGED, as_json=as_json)
