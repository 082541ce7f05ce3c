"""The commands that the demo shows are commands: typed as they stand, they decide about what waits."""

import asyncio
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from onecommit import App, Safety, WorkState, WorkView
from onecommit.cli import app as program
from onecommit.cli.application import load_app
from onecommit.demo.commands import alternatives

from tests.demo.items import item
from tests.strict import StrictDatabase, database
from tests.waiting_work import define, suspend

__all__ = ["database"]


def waiting(database: StrictDatabase, safety: Safety) -> WorkView:
    async def prepare() -> WorkView:
        async with App(database.dsn, **database.identity) as app:
            return await suspend(app, define(app, safety))

    return asyncio.run(prepare())


def stands(database: StrictDatabase, work_id: int) -> WorkState:
    async def look() -> WorkState:
        async with App(database.dsn, **database.identity) as app:
            return (await app.works.get(work_id)).state

    return asyncio.run(look())


@pytest.mark.pg
@pytest.mark.parametrize(
    ("number", "state"), [(0, WorkState.SUCCEEDED), (1, WorkState.RETRY_WAIT)], ids=str
)
def test_either_command_resolves(database, tmp_path: Path, monkeypatch, number: int, state):
    """With the receipt in the file that is named, or with the word that nothing was done."""
    for name, value in database.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ONECOMMIT_ACTOR", "ada")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "RECEIPT.json").write_text('"letter-1"')
    view = waiting(database, Safety.MANUAL_RESOLUTION)
    shown = item(
        Safety.MANUAL_RESOLUTION, view.work_id, revision=view.revision, action=view.action.value
    )
    name, *arguments = shlex.split(alternatives(shown)[number])
    assert name == "onecommit"
    done = CliRunner().invoke(program, arguments)
    assert done.exit_code == 0, done.output
    assert stands(database, view.work_id) is state


def test_the_command_names_the_application_that_knows_the_reconciler():
    """What `--app` loads registers one for every class that waits for it."""
    [command] = alternatives(item(Safety.RECONCILE_BEFORE_RETRY, 7, action="reconcile"))
    arguments = shlex.split(command)
    works = load_app(arguments[arguments.index("--app") + 1]).registry.work
    asked = [work for work in works if work.reconciles]
    assert [work.contract.safety for work in asked] == [Safety.RECONCILE_BEFORE_RETRY]


def test_what_waits_for_nobody_has_no_command():
    done = item(Safety.PROVIDER_KEYED, 1)
    assert alternatives(done) == []
    assert alternatives(replace(done, action="retry_safe")) == []
