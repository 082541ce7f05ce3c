"""What the commands on a database share: where it is, how long to wait, what happens meanwhile."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from onecommit.errors import InvalidArgument
from onecommit.schema import Patience

SchemaOption = Annotated[
    str, typer.Option("--schema", envvar="ONECOMMIT_SCHEMA", help="The schema's name.")
]
DsnFileOption = Annotated[
    Path | None,
    typer.Option(
        "--dsn-file",
        help="A file with the DSN; otherwise ONECOMMIT_DSN or libpq's PG* variables.",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]
StoreIdOption = Annotated[
    UUID | None,
    typer.Option(
        "--store-id", envvar="ONECOMMIT_STORE_ID", help="Refuse a database with another StoreId."
    ),
]
ActorOption = Annotated[
    str,
    typer.Option(
        "--actor",
        envvar=["ONECOMMIT_ACTOR", "USER"],
        help="Who does it; kept.",
    ),
]
WaitOption = Annotated[
    float,
    typer.Option(
        "--wait",
        min=1,
        max=86_400,
        help="Seconds to wait for each lock before giving up, at most a day.",
    ),
]

# Any of these says that the user wants libpq's environment.
_LIBPQ = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE")


def read_dsn(dsn_file: Path | None) -> str:
    """The DSN, from a file or the environment and never from an argument, which `ps` would show.

    Empty where libpq's own variables name the database.
    """
    if dsn_file is not None:
        return _first_line(dsn_file)
    dsn = os.environ.get("ONECOMMIT_DSN", "")
    if not dsn and not any(name in os.environ for name in _LIBPQ):
        raise InvalidArgument(
            "no database is named", remedy="Set ONECOMMIT_DSN, or PGHOST and PGDATABASE."
        )
    return dsn


def _first_line(file: Path) -> str:
    try:
        dsn = file.read_text("utf-8").strip()
    except UnicodeDecodeError:
        dsn = ""
    if not dsn or "\n" in dsn or "\0" in dsn:
        raise InvalidArgument(
            "dsn-file: the file is not one line of text",
            field="dsn-file",
            remedy="Write the DSN and nothing else into it.",
        )
    return dsn


def patience(wait: float) -> Patience:
    """The bounded wait that the option asks for."""
    return Patience(total=timedelta(seconds=wait))


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show what the schema manager logs: each finished step, and who is waited for."""
    logger = logging.getLogger("onecommit.schema")
    handler = logging.StreamHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
