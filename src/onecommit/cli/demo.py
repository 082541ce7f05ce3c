"""`onecommit demo`: the product in one minute."""

from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from onecommit.demo import Demo, Ledger, WorkLedger
from onecommit.demo.commands import alternatives

InvoicesOption = Annotated[int, typer.Option("--invoices", min=100, max=900_000, help="How many.")]

_WAITS_FOR = {
    "reconcile": "its reconciler, to which the provider could not say what was done",
    "resolve": "an operator, who finds out what was done",
}
"""By the action that is possible."""


def demo(*, invoices: InvoicesOption = 1000) -> None:
    """Settle invoices and do Work at a provider on a throw-away PostgreSQL while workers are killed; then count."""
    console = Console()
    console.print("Starting PostgreSQL ...")
    with Demo(invoices=invoices) as stage:
        _perform(stage, console)
        ledger, work = stage.ledger(), stage.work_ledger()
    console.print(_table(ledger), _work_table(work))
    _print_waiting(work, console)
    broken = ledger.violations + work.violations
    for promise in broken:
        console.print(f"[red]broken:[/red] {promise}")
    if broken:
        raise typer.Exit(1)
    console.print(
        "[green]Each invoice was settled exactly once, in the commit that completed its job."
        " No effect at the provider was doubled, and no unknown outcome was guessed.[/green]"
    )


def _perform(stage: Demo, console: Console) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console) as progress:
        for step in stage.run():
            if step.part not in tasks:
                tasks[step.part] = progress.add_task(step.part, total=step.total)
            progress.update(tasks[step.part], completed=step.done)
            if step.news:
                progress.console.print(step.news, soft_wrap=True)


def _table(ledger: Ledger) -> Table:
    table = Table(title="Invoices", show_header=False)
    table.add_row("invoices", str(ledger.invoices))
    table.add_row("settled exactly once", str(ledger.invoices_with_settlement))
    table.add_row("jobs completed", str(ledger.jobs_completed))
    table.add_row("attempts handed out", str(ledger.attempts))
    table.add_row("attempts rescued from lost workers", str(ledger.rescued))
    table.add_row("stale attempts refused, writes rolled back", str(ledger.stale_refused))
    table.add_row("stale attempts committed", str(ledger.stale_committed))
    return table


def _work_table(ledger: WorkLedger) -> Table:
    table = Table(title="Work")
    table.add_column("safety class")
    for column in ("accepted", "done", "wait", "calls", "effects", "doubled"):
        table.add_column(column, justify="right")
    for line in ledger.lines:
        counts = (
            line.accepted,
            line.succeeded,
            line.waiting,
            line.calls,
            line.effects,
            line.doubled,
        )
        table.add_row(line.safety.name, *map(str, counts))
    return table


def _print_waiting(ledger: WorkLedger, console: Console) -> None:
    """For whom what is suspended waits, and the commands that decide about the first of each contract."""
    for contract, group in groupby(ledger.waiting, key=lambda item: item.contract_name):
        first, *others = group
        whom = _WAITS_FOR.get(first.action or "", first.action)
        ids = ", ".join(str(item.work_id) for item in (first, *others))
        console.print(f"{contract} {ids}, waiting for {whom}:", soft_wrap=True)
        for command in alternatives(first):
            console.print(f"    {command}", soft_wrap=True, highlight=False, markup=False)
