"""`onecommit work list` and `show`: Work without its payloads, and what can be done about it."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import DsnFileOption, SchemaOption
from onecommit.cli.operating import JsonOption, WorkIdArgument, print_json, run
from onecommit.domain.work import WorkState
from onecommit.domain.work_view import WorkAction, WorkView
from onecommit.errors import WorkNotFound
from onecommit.schema import DEFAULT_SCHEMA

StateOption = Annotated[
    list[WorkState] | None, typer.Option("--state", help="Only in this state; repeat it for more.")
]
_COLUMNS = ("work_id", "scope", "contract", "state", "code", "action", "revision", "attempt")
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
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")] = 100,
    before: Annotated[
        int | None, typer.Option("--before", help="The last id of the page before.")
    ] = None,
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
    if as_json:
        print_json(found)
    else:
        _print_table(found, _COLUMNS)


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
    for name, value in msgspec.structs.asdict(view).items():
        if value is not None:
            typer.echo(f"{name:<22}{_text(value)}")
    _print_table(events, _HISTORY)
    if permits:
        _print_table(permits, _PERMITS)
    if command := next_command(view):
        typer.echo(f"next: {command}")


def _print_table(rows: Any, names: tuple[str, ...]) -> None:
    table = Table(*names, box=box.SIMPLE)
    for row in rows:
        table.add_row(*(_text(getattr(row, name)) for name in names))
    # Never narrower than its texts where nobody looks at a terminal.
    console = Console()
    Console(width=None if console.is_terminal else 250).print(table)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    return str(value)
