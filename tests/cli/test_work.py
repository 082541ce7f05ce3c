"""`onecommit work` and `onecommit scope`, as somebody with a shell and an operator's login."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from onecommit import App, Safety, WorkState, WorkView
from onecommit.cli import app as program
from onecommit.errors import OnecommitError, OperatorNotAuthorized

from tests.logins import PASSWORD, Logins
from tests.strict import StrictDatabase, database
from tests.waiting_work import accept, define, leave_behind, suspend

__all__ = ["database"]
pytestmark = pytest.mark.pg

Run = Callable[..., Result]
MODULE = """
from onecommit import App, Applied, Safety

app = App()
work = app.work({name!r}, version="1", payload=dict[str, int], result=str, safety=Safety({safety!r}))


@work.reconciler
async def ask(inquiry, payload):
    return Applied("ch_1")


@app.authorize
async def may(action):
    return action.actor == "ada"
"""


@pytest.fixture
def run(database: StrictDatabase, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The program with the database in its environment."""
    for name, value in database.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ONECOMMIT_ACTOR", "ada")
    runner = CliRunner()

    def invoke(*arguments: Any, text: str | None = None) -> Result:
        return runner.invoke(program, [str(each) for each in arguments], input=text)

    return invoke


def waiting(database: StrictDatabase, safety: Safety, *, items: int = 1) -> list[WorkView]:
    """Suspended Work of one contract, and a pending item."""

    async def prepare() -> list[WorkView]:
        async with App(database.dsn, **database.identity) as app:
            work = define(app, safety)
            views = [await suspend(app, work) for _ in range(items)]
            await accept(work, scope=views[0].scope)
            return views

    return asyncio.run(prepare())


def pending(database: StrictDatabase) -> WorkView:
    """Work that no worker has looked at."""

    async def prepare() -> Any:
        async with App(database.dsn, **database.identity) as app:
            accepted = await accept(define(app))
            return await app.works.get(accepted.work_id)

    return asyncio.run(prepare())


def stands(database: StrictDatabase, work_id: int) -> WorkView:
    async def look() -> Any:
        async with App(database.dsn, **database.identity) as app:
            return await app.works.get(work_id)

    return asyncio.run(look())


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[WorkView], str]]:
    """The application of this Work, as a module of the working directory."""
    monkeypatch.chdir(tmp_path)
    written: list[str] = []

    def write(view: WorkView) -> str:
        name = f"tasks_{view.work_id}_{len(written)}"
        text = MODULE.format(name=view.contract_name, safety=view.safety.value)
        (tmp_path / f"{name}.py").write_text(text)
        written.append(name)
        return f"{name}:app"

    path = list(sys.path)
    yield write
    sys.path[:] = path
    for name in written:
        sys.modules.pop(name, None)


def test_what_waits_is_listed_with_the_command_that_helps(run: Run, database: StrictDatabase):
    """The command that `show` prints is one that works, but for the reason."""
    [view] = waiting(database, Safety.PROVIDER_KEYED)
    listed = run("work", "list", "--scope", view.scope)
    assert listed.exit_code == 0
    assert str(view.work_id) in listed.output
    assert listed.output.count(view.scope) == 2
    only = json.loads(
        run("work", "list", "--needs-operator", "--scope", view.scope, "--json").stdout
    )
    assert [each["work_id"] for each in only] == [view.work_id]
    assert only[0]["action"] == "retry_safe"
    others = run("work", "list", "--state", "pending", "--scope", view.scope, "--json")
    assert [each["state"] for each in json.loads(others.stdout)] == ["pending"]

    shown = run("work", "show", view.work_id)
    assert "app.timeout" in shown.output
    [line] = [line for line in shown.output.splitlines() if line.startswith("next: ")]
    command = line.removeprefix("next: onecommit ").replace("'...'", "why").split()
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert "released: state retry_wait" in done.output
    assert stands(database, view.work_id).state is WorkState.RETRY_WAIT
    whole = json.loads(run("work", "show", view.work_id, "--json").stdout)
    assert whole["work"]["state"] == "retry_wait"
    assert whole["events"][0]["event"] == "accepted"
    assert whole["permits"][0]["outcome"] == "ambiguous"


def test_a_command_is_given_once(run: Run, database: StrictDatabase):
    """The id that is printed repeats it."""
    [view] = waiting(database, Safety.PROVIDER_KEYED)
    cancel = ("work", "cancel", view.work_id, "--reason", "typo", "--json")
    first = json.loads(run(*cancel).stdout)
    again = json.loads(run(*cancel, "--command-id", first["command_id"]).stdout)
    assert (first["outcome"], again["outcome"]) == ("suspended", "duplicate")
    assert again["revision"] == first["revision"]
    refused = run(*cancel, "--command-id", first["command_id"], "--actor", "bob")
    assert refused.exit_code == 1
    assert isinstance(refused.exception, OnecommitError)
    assert refused.exception.code == "ASDUR102"


def test_the_applications_reconciler_is_asked(run: Run, database: StrictDatabase, module):
    """If its own authorization allows it."""
    [view] = waiting(database, Safety.RECONCILE_BEFORE_RETRY)
    command = ("work", "reconcile", view.work_id, "--reason", "nightly")
    assert run(*command).exception.code == "ASDUR109"
    with_app = (*command, "--app", module(view))
    assert isinstance(run(*with_app, "--actor", "bob").exception, OperatorNotAuthorized)
    done = run(*with_app)
    assert done.exit_code == 0, done.output
    assert "recorded: state succeeded" in done.output
    assert run("work", "list", "--app", "nowhere:app").exit_code == 2
    assert run("work", "list", "--app", "json:dumps").exit_code == 2


def test_an_operator_resolves_with_the_result_in_a_file(
    run: Run, database: StrictDatabase, module, tmp_path: Path
):
    """Checked against the contract if the application is named; the proof leaves its digest."""
    first, second = waiting(database, Safety.MANUAL_RESOLUTION, items=2)
    proof = tmp_path / "statement.pdf"
    proof.write_bytes(b"statement")
    resolve = ("work", "resolve", first.work_id, "--revision", first.revision, "--reason", "asked")
    for wrong in ((), ("--applied", "-", "--not-applied")):
        assert run(*resolve, *wrong, text="1").exit_code == 2
    assert run(*resolve, "--applied", "-", text="not json").exit_code == 2
    refused = run(*resolve, "--applied", "-", "--app", module(first), text="17")
    assert refused.exception.code == "ASDUR100"
    done = run(*resolve, "--applied", "-", "--proof", proof, "--app", module(first), text='"ch_1"')
    assert done.exit_code == 0, done.output
    assert stands(database, first.work_id).state is WorkState.SUCCEEDED
    with database.connect() as observer:
        [digest] = observer.execute(
            "select proof_sha256 from onecommit.operator_command where work_id = %s",
            [first.work_id],
        ).fetchone()
    assert digest == hashlib.sha256(b"statement").digest()
    done = run(
        *("work", "resolve", second.work_id, "--revision", second.revision),
        *("--reason", "asked", "--not-applied"),
    )
    assert "recorded: state retry_wait" in done.output


def test_what_is_for_good_is_asked_for(run: Run, database: StrictDatabase):
    """Disabling, purging and releasing in bulk, unless --yes."""
    [view] = waiting(database, Safety.PROVIDER_KEYED)
    assert "generation   1" in run("scope", "show", view.scope).output
    disable = ("scope", "disable", view.scope, "--generation", "1", "--reason", "closed")
    assert run(*disable, text="n\n").exit_code == 1
    another = run(*("scope", "disable", view.scope, "--generation", "7", "--reason", "r", "--yes"))
    assert "give the generation that it has now" in str(another.exception)
    assert json.loads(run("scope", "show", view.scope, "--json").stdout)["state"] == "active"
    done = run(*disable, text="y\n")
    assert "disabled: generation 2, projected 2" in done.output
    assert run("scope", "show", "nowhere").exception.code == "ASDUR113"

    purge = ("work", "purge", "--older-than-days", "0", "--reason", "retention")
    assert run(*purge, text="n\n").exit_code == 1
    assert run(*purge, "--yes").output == "1 items purged\n"

    bulk = ("work", "release-all", "nowhere", "--reason", "restored")
    assert run(*bulk, text="n\n").exit_code == 1
    assert run(*bulk, "--preview").exception.code == "ASDUR113"


def test_work_of_an_older_epoch_is_released(run: Run, database: StrictDatabase):
    view = pending(database)
    leave_behind(database, view.work_id)
    bulk = ("work", "release-all", view.scope, "--reason", "restored", "--contract")
    shown = run(*bulk, view.contract_name, "--preview")
    assert "preview: " in shown.output
    assert shown.output.endswith("1 items\n")
    assert run(*bulk, "another", "--version", "1", "--yes").output == "0 items\n"
    one = run(
        *("work", "release", view.work_id, "--revision", view.revision + 1),
        *("--reason", "restored"),
    )
    assert one.exit_code == 0, one.output
    assert "released: " in one.output
    assert json.loads(run(*bulk, view.contract_name, "--yes", "--json").stdout) == []


def test_a_number_that_nothing_has_is_refused(run: Run):
    """Not by a traceback of the driver."""
    work_id, bounds = 2**64, ("--actor", "ada", "--reason", "asked")
    for command in (
        ("work", "show", work_id),
        ("work", "list", "--before", work_id),
        ("work", "retry-safe", work_id, "--revision", 1, *bounds),
        ("scope", "disable", "tenant-1", "--generation", work_id, "--yes", *bounds),
    ):
        error = run(*command).exception
        assert isinstance(error, OnecommitError), command
        assert error.code == "22023"
    assert run("work", "purge", "--older-than-days", 1e9, "--yes", *bounds).exit_code == 2


def test_the_operators_login_suffices(
    run: Run, database: StrictDatabase, monkeypatch: pytest.MonkeyPatch
):
    """With the one capability, and no right on any table."""
    [view] = waiting(database, Safety.PROVIDER_KEYED)
    with database.connect() as owner:
        logins = Logins(database=database, owner=owner, capabilities=("work_operator",)).create()
        role = logins.role("work_operator")
        monkeypatch.setenv("ONECOMMIT_DSN", f"{database.dsn}?user={role}&password={PASSWORD}")
        with monkeypatch.context() as unset:
            unset.delenv("ONECOMMIT_STORE_ID")
            assert run("work", "show", view.work_id).exception.code == "ASDUR115"
        shown = run("work", "show", view.work_id)
        assert shown.exit_code == 0, shown.exception
        assert run("work", "list", "--needs-operator").exit_code == 0
        assert run("scope", "show", view.scope).exit_code == 0
        retry = ("work", "retry-safe", view.work_id, "--revision", view.revision)
        assert run(*retry, "--reason", "provider is back").exit_code == 0
        logins.drop()
