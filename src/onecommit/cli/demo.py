"""`onecommit demo`: the product in one minute."""

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from onecommit.demo import Demo, Ledger

InvoicesOption = Annotated[int, typer.Option("--invoices", min=100, max=900_000, help="How many.")]


def demo(*, invoices: InvoicesOption = 1000) -> None:
    """Settle invoices on a throw-away PostgreSQL while workers are frozen and killed; then count."""
    console = Console()
    console.print("Starting PostgreSQL ...")
    with Demo(invoices=invoices) as stage:
        _perform(stage, console)
        ledger = stage.ledger()
    console.print(_table(ledger))
    if ledger.violations:
        for promise in ledger.violations:
            console.print(f"[red]broken:[/red] {promise}")
        raise typer.Exit(1)
    console.print(
        "[green]Each invoice was settled exactly once, in the commit that completed its job.[/green]"
    )


def _perform(stage: Demo, console: Console) -> None:
    columns = TextColumn("settled"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("settled", total=stage.invoices)
        for step in stage.run():
            progress.update(task, completed=step.settled)
            if step.news:
                progress.console.print(step.news)


def _table(ledger: Ledger) -> Table:
    table = Table(title="Ledger", show_header=False)
    table.add_row("invoices", str(ledger.invoices))
    table.add_row("settled exactly once", str(ledger.invoices_with_settlement))
    table.add_row("jobs completed", str(ledger.jobs_completed))
    table.add_row("attempts handed out", str(ledger.attempts))
    table.add_row("attempts rescued from lost workers", str(ledger.rescued))
    table.add_row("stale attempts refused, writes rolled back", str(ledger.stale_refused))
    table.add_row("stale attempts committed", str(ledger.stale_committed))
    return table
