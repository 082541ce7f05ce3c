"""The commands of `onecommit work` that change something; each is kept with its actor and reason."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import typer

from onecommit.app.app import App
from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import ActorOption, DsnFileOption, SchemaOption
from onecommit.cli.operating import (
    CommandIdOption,
    JsonOption,
    ReasonOption,
    RevisionOption,
    WorkIdArgument,
    YesOption,
    command_id,
    confirm,
    run,
)
from onecommit.cli.printing import print_json, print_result
from onecommit.domain.work_command import EncodedEvidence
from onecommit.domain.work_exit import Applied, NotApplied
from onecommit.errors import WorkNotFound
from onecommit.schema import DEFAULT_SCHEMA

Evidence = Applied[Any] | NotApplied | EncodedEvidence


def cancel(
    work_id: WorkIdArgument,
    *,
    actor: ActorOption,
    reason: ReasonOption,
    command: CommandIdOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let nothing of it start any more; an effect that may have happened waits for evidence."""
    named = command_id(command)
    result = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.cancel(work_id, command_id=named, actor=actor, reason=reason),
    )
    print_result(result, command=named, as_json=as_json)


def reconcile(
    work_id: WorkIdArgument,
    *,
    actor: ActorOption,
    reason: ReasonOption,
    command: CommandIdOption = None,
    lease: Annotated[
        float,
        typer.Option("--lease-seconds", min=1, max=3600, help="How long nobody else may ask."),
    ] = 60,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the provider by the reconciler that --app registers, and record what it says."""
    named = command_id(command)
    result = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.reconcile(
            work_id,
            command_id=named,
            actor=actor,
            reason=reason,
            lease=timedelta(seconds=lease),
        ),
    )
    print_result(result, command=named, as_json=as_json)


def resolve(
    work_id: WorkIdArgument,
    *,
    revision: RevisionOption,
    actor: ActorOption,
    reason: ReasonOption,
    applied: Annotated[
        typer.FileBinaryRead | None,
        typer.Option(
            "--applied", help="The provider did it; a file with the result in JSON, - for stdin."
        ),
    ] = None,
    not_applied: Annotated[
        bool, typer.Option("--not-applied", help="It did not, and no longer will.")
    ] = False,
    proof: Annotated[
        typer.FileBinaryRead | None,
        typer.Option("--proof", help="A document that you keep; its SHA-256 is recorded."),
    ] = None,
    command: CommandIdOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record what you found out about the newest call that may have had an effect."""
    if (applied is None) is not not_applied:
        raise typer.BadParameter("give one of them", param_hint="--applied, --not-applied")
    result_bytes = None if applied is None else applied.read()
    digest = None if proof is None else hashlib.sha256(proof.read()).digest()
    named = command_id(command)

    async def operate(opened: App) -> Any:
        evidence: Evidence = NotApplied()
        if result_bytes is not None:
            evidence = await _applied(opened, work_id, result_bytes)
        return await opened.works.resolve(
            work_id,
            evidence,
            revision=revision,
            command_id=named,
            actor=actor,
            reason=reason,
            proof_sha256=digest,
        )

    result = run(open_app(app, schema=schema, dsn_file=dsn_file), operate)
    print_result(result, command=named, as_json=as_json)


def retry_safe(
    work_id: WorkIdArgument,
    *,
    revision: RevisionOption,
    actor: ActorOption,
    reason: ReasonOption,
    command: CommandIdOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try it once more: ambiguous Work of a safe class, or Work whose contract was unavailable."""
    named = command_id(command)
    result = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.retry_safe(
            work_id, revision=revision, command_id=named, actor=actor, reason=reason
        ),
    )
    print_result(result, command=named, as_json=as_json)


def release(
    work_id: WorkIdArgument,
    *,
    revision: RevisionOption,
    actor: ActorOption,
    reason: ReasonOption,
    command: CommandIdOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let Work of an older epoch go on under the active one, or wait for evidence by its class."""
    named = command_id(command)
    result = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.release(
            work_id, revision=revision, command_id=named, actor=actor, reason=reason
        ),
    )
    print_result(result, command=named, as_json=as_json)


def release_all(
    scope: Annotated[str, typer.Argument(metavar="SCOPE", help="Whose Work.")],
    *,
    actor: ActorOption,
    reason: ReasonOption,
    contract: Annotated[str | None, typer.Option("--contract", help="Only of this name.")] = None,
    version: Annotated[str | None, typer.Option("--version", help="Only of this version.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")] = 100,
    preview: Annotated[bool, typer.Option("--preview", help="Only show which.")] = False,
    command: CommandIdOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Release the oldest items that an older epoch left in a scope, each by itself."""
    if not preview and not yes:
        confirm(f"Release up to {limit} items of {scope}?")
    named = command_id(command)
    released = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.release_all(
            scope,
            command_id=named,
            actor=actor,
            reason=reason,
            contract=contract,
            version=version,
            limit=limit,
            preview=preview,
        ),
    )
    if as_json:
        print_json(released)
        return
    for result in released:
        print_result(result, command=named, as_json=False)
    typer.echo(f"{len(released)} items")


def purge(
    *,
    older_than: Annotated[
        float,
        typer.Option("--older-than-days", min=0, max=36_500, help="Ended at least so long ago."),
    ],
    actor: ActorOption,
    reason: ReasonOption,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="At most so many at a time.")
    ] = 1000,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Forget payloads and results of ended Work; identities and history stay."""
    if not yes:
        confirm(f"Forget the payloads of Work that ended {older_than} days ago?")
    before = datetime.now(UTC) - timedelta(days=older_than)
    purged = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.purge(before, actor=actor, reason=reason, limit=limit),
    )
    if as_json:
        print_json({"purged": purged})
    else:
        typer.echo(f"{purged} items purged")


async def _applied(opened: App, work_id: int, result: bytes) -> Evidence:
    """The result as the registered contract has it, else as JSON of any shape."""
    view = await opened.works.get(work_id)
    if view is None:
        raise WorkNotFound("there is no such Work")
    work = opened.registry.work.get(view.contract_name, view.contract_version)
    if work is not None:
        return Applied(work.contract.decode_result(result))
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(result), order="sorted")
    except msgspec.DecodeError:
        message = "the file is not JSON"
    else:
        return EncodedEvidence(evidence="applied", result=canonical, codec="json")
    raise typer.BadParameter(message, param_hint="--applied")
