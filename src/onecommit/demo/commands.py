"""The commands by which an operator of the demo decides about Work that waits."""

import shlex
from collections.abc import Sequence

from onecommit.demo.work_ledger import WorkItem


def reconcile(work_id: int) -> list[str]:
    """Let the reconciler of the demo's application ask the provider."""
    app = "onecommit.demo.orders:app"
    return ["work", "reconcile", str(work_id), "--app", app, "--reason", "asked the provider"]


def resolve(work_id: int, *, revision: int, applied: bool) -> list[str]:
    """Say what the operator has found out; what was done has its receipt in a file."""
    evidence = ["--applied", "RECEIPT.json"] if applied else ["--not-applied"]
    found = ["--revision", str(revision), "--reason", "asked the post office"]
    return ["work", "resolve", str(work_id), *found, *evidence]


def alternatives(item: WorkItem) -> list[str]:
    """The commands of which one decides about an item that waits."""
    match item.action:
        case "reconcile":
            commands = [reconcile(item.work_id)]
        case "resolve":
            commands = [
                resolve(item.work_id, revision=item.revision, applied=applied)
                for applied in (True, False)
            ]
        case _:
            commands = []
    return [shown(command) for command in commands]


def shown(command: Sequence[str]) -> str:
    """As it is typed."""
    return shlex.join(["onecommit", *command])
