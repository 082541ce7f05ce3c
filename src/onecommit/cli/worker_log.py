"""What a worker writes to standard error: lines for people or for programs."""

import logging
from enum import StrEnum
from typing import Annotated

import typer

from onecommit.errors import OnecommitError
from onecommit.telemetry.json_log import JsonFormatter


class LogFormat(StrEnum):
    """How a line of the log looks."""

    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", help="Lines for people, or one JSON object a line."),
]


def set_up(log_format: LogFormat) -> None:
    """Write the log of this process to standard error, from level INFO on."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if log_format is LogFormat.JSON:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())


def say_refused(error: OnecommitError, log_format: LogFormat) -> None:
    """Say why the worker does not start, or ends, in the format of its log."""
    if log_format is LogFormat.JSON:
        logging.getLogger("onecommit").critical("%s", error)
    else:
        typer.echo(f"error: {error}", err=True)
