"""`onecommit work list`, `show` and `counts`: Work without its payloads, and what can be done about it."""

from typing import Annotated, Any

import msgspec
import typer

from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import DsnFileOption, SchemaOption
from onecommit.cli.operating import BeforeOption, JsonOption, LimitOption, WorkIdArgument, run
from onecommit.cli.printing import print_fields, print_json, print_table, print_views
from onecommit.domain.work import WorkState
from onecommit.domain.work_view import WorkAction, WorkView
from onecommit.errors import WorkNotFound
from onecommit.schema import DEFAULT_SCHEMA

StateOption = Annotated[
    list[WorkState] | None, typer.Option("--state", help="Only in this state; repeat it for more.")
]
_COLUMNS = ("work_id", "scope", "contract", "state", "code", "action", "revision", "attempt")
_COUNTS = ("contract", "state", "items", "oldest_at")
_HISTORY = ("at", "event", "to_state", "revision", "attempt", "code", "application_code", "actor")
_PERMITS = ("attempt", "outcome", "granted_at", "invocation_admitted_at", "closed_at")
_NEXT = {
    WorkAction.RECONCILE: "reconcile {0} --app MODULE:APP",
    WorkAction.RESOLVE: "resolve {0} --revision {1} [--applied RESULT.json | --not-applied]",
    WorkAction.RETRY_SAFE: "retry-safe {0} --revision {1}",
    WorkAction.RELEASE: "release {0} --revision {1}",
    WorkAction.CANCEL: "cancel {0}",
}


def next_command(view: WorkView) -> str | None:
    """The command that is possible now, or None while the Work needs nobody."""
    if view.action is None:
        return None
    asked = _NEXT[view.action].format(view.work_id, view.revision)
    return f"onecommit work {asked} --reason '...'"


def list_work(
    *,
    scope: Annotated[str | None, typer.Option("--scope", help="Only of this scope.")] = None,
    state: StateOption = None,
    needs_operator: Annotated[
        bool, typer.Option("--needs-operator", help="Only what waits for an operator.")
    ] = False,
    contract: Annotated[
        str | None, typer.Option("--contract", help="Only of this contract's name.")
    ] = None,
    limit: LimitOption = 100,
    before: BeforeOption = None,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List Work without payloads, the newest first."""
    found = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.list(
            scope=scope,
            states=state,
            needs_operator=needs_operator,
            contract=contract,
            limit=limit,
            before=before,
        ),
    )
    print_views(found, _COLUMNS, as_json=as_json)


def show(
    work_id: WorkIdArgument,
    *,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one item: how it stands, what happened, its permits, and the command that is possible."""

    async def read(opened: Any) -> tuple[WorkView, Any, Any]:
        view = await opened.works.get(work_id)
        if view is None:
            raise WorkNotFound("there is no such Work")
        return view, await opened.works.events(work_id), await opened.works.permits(work_id)

    opened = open_app(app, schema=schema, dsn_file=dsn_file)
    view, events, permits = run(opened, read)
    if as_json:
        print_json({"work": view, "events": events, "permits": permits})
        return
    print_fields(msgspec.structs.asdict(view))
    print_table(events, _HISTORY)
    if permits:
        print_table(permits, _PERMITS)
    if command := next_command(view):
        typer.echo(f"next: {command}")


def counts(
    *,
    scope: Annotated[str | None, typer.Option("--scope", help="Only of this scope.")] = None,
    contract: Annotated[
        str | None, typer.Option("--contract", help="Only of this contract's name.")
    ] = None,
    by_scope: Annotated[
        bool, typer.Option("--by-scope", help="Count those of each scope for themselves.")
    ] = False,
    limit: LimitOption = 100,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the Work that has not ended, by contract and state, the largest counts first."""
    found = run(
        open_app(app, schema=schema, dsn_file=dsn_file),
        lambda opened: opened.works.counts_by_contract(
            scope=scope, contract=contract, by_scope=by_scope, limit=limit
        ),
    )
    print_views(found, ("scope", *_COUNTS) if by_scope else _COUNTS, as_json=as_json)
