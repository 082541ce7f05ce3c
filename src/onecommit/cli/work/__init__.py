"""`onecommit work`: look at Work, and decide about what waits for an operator."""

import typer

from onecommit.cli.work import commands, views

work_commands = typer.Typer(
    no_args_is_help=True, help="Look at Work, and decide about what waits for an operator."
)
work_commands.command("list")(views.list_work)
work_commands.command("show")(views.show)
work_commands.command("counts")(views.counts)
work_commands.command("cancel")(commands.cancel)
work_commands.command("reconcile")(commands.reconcile)
work_commands.command("resolve")(commands.resolve)
work_commands.command("retry-safe")(commands.retry_safe)
work_commands.command("release")(commands.release)
work_commands.command("release-all")(commands.release_all)
work_commands.command("purge")(commands.purge)
