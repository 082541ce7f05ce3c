"""`onecommit worker`: run the jobs of an application."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from onecommit.app.app import App
from onecommit.cli.application import load_app
from onecommit.cli.worker_log import LogFormat, LogFormatOption, say_refused, set_up
from onecommit.errors import (
    EpochFenced,
    InvalidArgument,
    OnecommitError,
    SchemaError,
    StoreMismatch,
    StoreUnavailable,
    UsageError,
)
from onecommit.telemetry.events import log_event
from onecommit.worker.runtime import Worker
from onecommit.worker.settings import WorkerSettings, parse_queue, parse_work
from onecommit.worker.supervisor import EXIT_CONFIGURATION, Supervisor, stop_with_parent

EXIT_UNAVAILABLE = 69
_LAST_PORT = 65_535
_COLLECT_EVERY = 50_000
"""New objects between two looks of the garbage collector; jobs make many that need none."""

AppArgument = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="Where the App is, such as myproject.tasks:app.")
]
QueueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        metavar="NAME[:CONCURRENCY]",
        help="A queue to serve, with how many jobs run at a time in each process (20). Repeat it for "
        "more; without it and without --work, the queues of all registered jobs.",
    ),
]
WorkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--work",
        metavar="NAME[:CONCURRENCY]",
        help="Work to run, by its contract's name, with how many items run at a time in each process "
        "(5). Repeat it for more; without it and without --queue, all that has an executor.",
    ),
]
ProcessesOption = Annotated[
    int, typer.Option("--processes", min=1, max=256, help="Worker processes to keep running.")
]
OnceOption = Annotated[bool, typer.Option("--once", help="Run the queues empty, then exit.")]
NameOption = Annotated[str, typer.Option("--name", help="Shown to operators; host:pid by default.")]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=1, help="Most threads for `def` handlers.")
]
DrainOption = Annotated[
    float,
    typer.Option(
        "--drain-seconds", min=0.001, help="How long running jobs may go on after SIGTERM."
    ),
]
WindowOption = Annotated[
    float,
    typer.Option(
        "--rescue-seconds",
        min=1,
        help="A worker silent for this long loses its jobs to the others.",
    ),
]
ApplicationOption = Annotated[
    int | None,
    typer.Option(
        "--application-connections",
        min=1,
        help="Size of the pool from which handlers take their transactions, in each process.",
    ),
]
SharedPoolOption = Annotated[
    int | None,
    typer.Option(
        "--shared-pool",
        min=1,
        help="Server connections of the pooler that runtime and handlers share, for each process.",
    ),
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=1,
        max=_LAST_PORT,
        help="Serve /metrics, /livez and /readyz here; each further process at the next port.",
    ),
]
MetricsHostOption = Annotated[
    str, typer.Option("--metrics-host", help="The interface for --metrics-port.")
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Start only if `onecommit doctor --strict` finds no drift."),
]
SupervisedOption = Annotated[bool, typer.Option("--supervised", hidden=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """What the command line says about one process."""

    queues: dict[str, int] | None
    work: dict[str, int] | None
    once: bool
    name: str
    threads: int
    drain_seconds: float
    rescue_seconds: float
    application_connections: int | None
    shared_pool: int | None
    metrics_port: int | None
    metrics_host: str
    log_format: LogFormat
    strict: bool

    def settings(self, app: App) -> WorkerSettings:
        """The settings of the worker, with the App's own queues if none is named."""
        # Naming one kind leaves the other out: a worker for a queue need not run Work.
        everything = self.queues is None and self.work is None
        queues, work = self.queues or {}, self.work or {}
        if everything:
            queues = app.default_queues()
            work = app.default_work()
        if not queues and not work:
            raise UsageError(
                "the App has no registered job and no Work with an executor, so there is nothing to run",
                remedy="Import the modules that register its jobs, or name a queue: --queue email:20.",
            )
        return self.settings_for(queues, work)

    def settings_for(self, queues: Mapping[str, int], work: Mapping[str, int]) -> WorkerSettings:
        """The same for these queues and this Work."""
        return WorkerSettings(
            queues=queues,
            work=work,
            name=self.name,
            threads=self.threads,
            drain_budget=self.drain_seconds,
            rescue_window=self.rescue_seconds,
            heartbeat_interval=min(5.0, self.rescue_seconds / 6),
            application_connections=self.application_connections,
            shared_pool=self.shared_pool,
            metrics_port=self.metrics_port,
            metrics_host=self.metrics_host,
        )


def worker(
    app: AppArgument,
    *,
    queue: QueueOption = None,
    work: WorkOption = None,
    processes: ProcessesOption = 1,
    once: OnceOption = False,
    name: NameOption = "",
    threads: ThreadsOption = 64,
    drain_seconds: DrainOption = 20.0,
    rescue_seconds: WindowOption = 30.0,
    application_connections: ApplicationOption = None,
    shared_pool: SharedPoolOption = None,
    metrics_port: MetricsPortOption = None,
    metrics_host: MetricsHostOption = "127.0.0.1",
    log_format: LogFormatOption = LogFormat.TEXT,
    strict: StrictOption = False,
    supervised: SupervisedOption = False,
) -> None:
    """Claim and run jobs until SIGTERM or Ctrl-C; the second signal ends running jobs at once.

    Exit codes: 0 after a complete drain, 1 if jobs were left to rescue, 69 if the server does not
    answer at the start, 78 if the schema, the store, the epoch or the metrics' port does not fit this
    process, or the store is not strict where that is asked for.
    """
    set_up(log_format)
    choices = _Choices(
        queues=_named(queue, parse_queue, option="--queue"),
        work=_named(work, parse_work, option="--work"),
        once=once,
        name=name,
        threads=threads,
        drain_seconds=drain_seconds,
        rescue_seconds=rescue_seconds,
        application_connections=application_connections,
        shared_pool=shared_pool,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        log_format=log_format,
        strict=strict,
    )
    _check(choices)
    if processes > 1:
        raise typer.Exit(_supervise(processes, choices))
    if supervised:
        stop_with_parent(budget=drain_seconds + 10)
    code = _run(load_app(app), choices)
    raise typer.Exit(code)


def _named(
    texts: list[str] | None, parse: Callable[[str], tuple[str, int]], *, option: str
) -> dict[str, int] | None:
    try:
        return dict(map(parse, texts)) if texts else None
    except InvalidArgument as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def _check(choices: _Choices) -> None:
    """Refuse what no worker can be given, before an App is imported or a process started."""
    try:
        choices.settings_for({"default": 1}, {})
    except InvalidArgument as error:
        raise typer.BadParameter(str(error)) from error


def _supervise(processes: int, choices: _Choices) -> int:
    """Run this same command line in children of one process each, which share no port."""
    arguments = _without(sys.argv[1:], "--processes", "--metrics-port")
    command = [sys.executable, "-m", "onecommit", *arguments, "--supervised"]
    commands = [command] * processes
    if choices.metrics_port is not None:
        ports = range(choices.metrics_port, choices.metrics_port + processes)
        if ports[-1] > _LAST_PORT:
            message = f"the ports up to {ports[-1]} are needed, and {_LAST_PORT} is the last one"
            raise typer.BadParameter(message, param_hint="--metrics-port")
        from onecommit.worker.monitor import check_metrics

        try:
            check_metrics(choices.metrics_host, ports)
        except UsageError as error:
            return _refused(error, choices, EXIT_CONFIGURATION)
        commands = [[*command, f"--metrics-port={port}"] for port in ports]
    return asyncio.run(Supervisor(commands, emit=log_event).run())


def _without(arguments: list[str], *options: str) -> list[str]:
    """The arguments without these options and their values."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in options:
            skip = True
        elif argument.partition("=")[0] not in options:
            kept.append(argument)
    return kept


def _run(app: App, choices: _Choices) -> int:
    gc.collect()
    gc.freeze()  # what was imported lives as long as the process
    gc.set_threshold(_COLLECT_EVERY)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        code = runner.run(_work(app, choices))
        if code:
            # A handler that ignored its cancellation would keep the loop from closing.
            logging.shutdown()
            os._exit(code)
    return code


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


async def _work(app: App, choices: _Choices) -> int:
    worker = Worker(app, choices.settings(app))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.request_stop)
    try:
        if choices.strict:
            await asyncio.to_thread(_require_strict, app)
        await worker.start()
        if choices.once:
            await _drain_unless_stopped(worker)
        return 1 if await worker.run() else 0
    except (SchemaError, StoreMismatch, EpochFenced, UsageError, InvalidArgument) as error:
        return _refused(error, choices, EXIT_CONFIGURATION)
    except StoreUnavailable as error:
        return _refused(error, choices, EXIT_UNAVAILABLE)
    finally:
        await app.close()


def _require_strict(app: App) -> None:
    from onecommit.doctor import require_strict

    require_strict(app.settings.dsn, schema=app.settings.schema)


async def _drain_unless_stopped(worker: Worker) -> None:
    """Request a stop when the queues are empty; a signal may do so earlier."""
    drain = asyncio.ensure_future(worker.drain())
    stop = asyncio.ensure_future(worker.stop_requested())
    await asyncio.wait([drain, stop], return_when=asyncio.FIRST_COMPLETED)
    if not stop.done():
        stop.cancel()
        worker.request_stop()
    if drain.done():
        await drain
    else:
        drain.cancel()


def _refused(error: OnecommitError, choices: _Choices, code: int) -> int:
    say_refused(error, choices.log_format)
    return code
