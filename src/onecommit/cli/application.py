"""The App that a command works with: the user's own, or one that only knows the database."""

import importlib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from onecommit.app.app import App
from onecommit.cli.database import read_dsn
from onecommit.schema import DEFAULT_SCHEMA

_FROM_LIBPQ = "fallback_application_name=onecommit"

AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        envvar="ONECOMMIT_APP",
        metavar="MODULE:APP",
        help="The application whose contracts, reconcilers and @app.authorize are used, and its database.",
    ),
]


def load_app(path: str, *, hint: str = "MODULE:APP") -> App:
    """Import the App, from the working directory if need be."""
    module_name, _, attribute = path.partition(":")
    named = all(part.isidentifier() for part in module_name.split("."))
    if not attribute or not named or module_name.endswith(".py"):
        message = "write it as module:app, such as myproject.tasks:app for myproject/tasks.py"
        raise typer.BadParameter(message, param_hint=hint)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - sys.path holds texts
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        message = f"there is no module {module_name} here"
        raise typer.BadParameter(message, param_hint=hint) from error
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, App):
        message = f"{attribute} is not an App in {module_name}"
        raise typer.BadParameter(message, param_hint=hint)
    return found


def open_app(path: str | None, *, schema: str, dsn_file: Path | None) -> App:
    """The user's App if one is named, else one for the database that the options and the environment name.

    Without the user's App, whoever can log in with the operator's capability is the one who may.
    """
    if path is None:
        # Libpq's own variables name the database where the DSN is empty; an App wants to be told so.
        app = App(read_dsn(dsn_file) or _FROM_LIBPQ, schema=schema)
        app.authorize(lambda _: True)
        return app
    if dsn_file is not None:
        raise typer.BadParameter(
            "the App of --app has a database of its own", param_hint="--dsn-file"
        )
    app = load_app(path, hint="--app")
    if schema not in (DEFAULT_SCHEMA, app.settings.schema):
        raise typer.BadParameter("the App of --app has a schema of its own", param_hint="--schema")
    return app
