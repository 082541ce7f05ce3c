"""`onecommit workers`: who works, since when nobody has heard of them, and what they hold."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from onecommit.app.app import App
from onecommit.cli.application import AppOption, open_app
from onecommit.cli.database import DsnFileOption, SchemaOption
from onecommit.cli.operating import JsonOption, run
from onecommit.cli.printing import print_json, print_table
from onecommit.domain.worker import WorkerLoad, WorkerView
from onecommit.schema import DEFAULT_SCHEMA

_COLUMNS = (
    "worker", "name", "state", "heartbeat_at", "running", "waiting", "work", "leads", "host", "pid", "version",
    "queues", "contracts",
)  # fmt: skip


def workers(
    *,
    schema: SchemaOption = DEFAULT_SCHEMA,
    dsn_file: DsnFileOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the workers that are alive or whose jobs are not settled, and what each of them holds."""

    async def read(opened: App) -> list[dict[str, Any]]:
        loads = await opened.workers.loads()
        now = datetime.now(UTC)
        return [_row(each, loads.get(each.worker), now) for each in await opened.workers.list()]

    found = run(open_app(app, schema=schema, dsn_file=dsn_file), read)
    if as_json:
        print_json(found)
    else:
        print_table([SimpleNamespace(**_in_words(row)) for row in found], _COLUMNS)


def _row(view: WorkerView, load: WorkerLoad | None, now: datetime) -> dict[str, Any]:
    said = view.info if isinstance(view.info, dict) else {}
    return {
        "worker": view.worker,
        "name": view.name,
        "state": _state(view, now),
        "started_at": view.started_at,
        "heartbeat_at": view.heartbeat_at,
        "ended_at": view.ended_at,
        "epoch": view.epoch,
        "running": load and load.running,
        "waiting": load and load.waiting,
        "work": load and load.work,
        "leads": load is not None and load.leads,
        "host": said.get("host"),
        "pid": said.get("pid"),
        "version": said.get("version"),
        "queues": said.get("queues"),
        "contracts": said.get("work"),
    }


def _state(view: WorkerView, now: datetime) -> str:
    if view.ended_at is not None:
        return "ended"
    return "silent" if view.is_silent(now) else "alive"


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in row.items()
    }
