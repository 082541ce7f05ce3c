"""Which capabilities the login of a command needs; its help says so, and its error where one is missing."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import typer

from onecommit.app.capabilities import (
    INGRESS,
    OPERATOR,
    READER,
    WORK_OPERATOR,
    WORK_READER,
    WORK_RETENTION,
    WORKER,
)
from onecommit.domain.capability import MIGRATOR, Needs, in_words, lacking
from onecommit.errors import CapabilityMissing

COMMANDS: Mapping[str, Needs] = {
    "demo": (),
    "worker": WORKER,
    "migrate": MIGRATOR,
    "status": READER,
    "doctor": (),
    "workers": READER,
    "ring": READER,
    "provision": (),
    "fence": MIGRATOR,
    "epoch init": MIGRATOR,
    "epoch rotate": MIGRATOR,
    "lanes add": MIGRATOR,
    "job list": READER,
    "job show": READER,
    "job cancel": OPERATOR,
    "queue list": READER,
    "queue show": READER,
    "queue pause": OPERATOR,
    "queue resume": OPERATOR,
    "queue disable-caller-owned": OPERATOR,
    "queue allow-caller-owned": OPERATOR,
    "dlq list": READER,
    "dlq retry": OPERATOR,
    "dlq purge": OPERATOR,
    "callback list": READER,
    "callback resume": INGRESS,
    "callback complete": INGRESS,
    "callback fail": INGRESS,
    "callback retry": INGRESS,
    "work list": WORK_READER,
    "work show": WORK_READER,
    "work counts": WORK_READER,
    "work cancel": WORK_OPERATOR,
    "work reconcile": WORK_OPERATOR,
    "work resolve": WORK_OPERATOR,
    "work retry-safe": WORK_OPERATOR,
    "work release": WORK_OPERATOR,
    "work release-all": WORK_OPERATOR,
    "work purge": WORK_RETENTION,
    "scope show": WORK_READER,
    "scope disable": WORK_OPERATOR,
    "embedded start": (),
    "embedded stop": (),
    "embedded status": (),
    "embedded dsn": (),
    "embedded psql": (),
}


def say_needs(group: typer.Typer, *above: str) -> None:
    """Let every command below say what its login needs; each must be listed."""
    for command in group.registered_commands:
        assert command.callback is not None  # noqa: S101  each is made from a function
        name = command.name or command.callback.__name__.replace("_", "-")
        path = " ".join((*above, name))
        if needs := COMMANDS[path]:
            command.epilog = f"Needs a login with the capability {in_words(needs)}."
            command.callback = _naming(path, needs, command.callback)
    for inner in group.registered_groups:
        if inner.typer_instance is not None and inner.name is not None:
            say_needs(inner.typer_instance, *above, inner.name)


def _naming(path: str, needs: Needs, callback: Callable[..., Any]) -> Callable[..., Any]:
    """The command itself, whose refusal for want of a capability names those of the whole command."""

    @wraps(callback)
    def command(*arguments: Any, **options: Any) -> Any:
        try:
            return callback(*arguments, **options)
        except CapabilityMissing as error:
            raise lacking(needs, f"`onecommit {path}`") from error

    return command
