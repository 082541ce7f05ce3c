"""Every command works with a login that has exactly the capability of its table, and tells any other what it lacks."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onecommit import Safety
from onecommit.cli.capabilities import COMMANDS
from onecommit.domain.capability import MIGRATOR, Needs, in_words
from onecommit.schema.grants import capabilities

from tests.cli.conftest import MODULES, Ended, Program, everything, identity
from tests.cli.seeds import Seeds
from tests.schema.provisioned import Provisioned

pytestmark = pytest.mark.pg

WHY = ("--reason", "a test")
MODULE = """
from onecommit import App, Applied, Safety

app = App()
work = app.work({name!r}, version="1", payload=dict[str, int], result=str, safety=Safety({safety!r}))
app.authorize(lambda action: True)


@app.job(queue="idle")
async def idle(ctx) -> None: ...


@work.reconciler
def ask(inquiry, payload):
    return Applied("ch_1")
"""


def module(view, directory: Path) -> str:
    """The application of this Work, in a module of its own."""
    name = f"{MODULES}{view.work_id}_{directory.name.replace('-', '_')}"
    text = MODULE.format(name=view.contract_name, safety=view.safety.value)
    (directory / f"{name}.py").write_text(text)
    return f"{name}:app"


def reconcile(seeds: Seeds, directory: Path) -> tuple[object, ...]:
    view = seeds.work(Safety.RECONCILE_BEFORE_RETRY)
    return view.work_id, *WHY, "--app", module(view, directory)


def resolve(seeds: Seeds, _: Path) -> tuple[object, ...]:
    view = seeds.work(Safety.MANUAL_RESOLUTION)
    return view.work_id, "--revision", view.revision, "--not-applied", *WHY


def retry_safe(seeds: Seeds, _: Path) -> tuple[object, ...]:
    view = seeds.work()
    return view.work_id, "--revision", view.revision, *WHY


def release(seeds: Seeds, _: Path) -> tuple[object, ...]:
    view = seeds.left_behind()
    return view.work_id, "--revision", view.revision + 1, *WHY


def queue(seeds: Seeds, _: Path) -> tuple[object, ...]:
    seeds.jobs()
    return "email", *WHY


def nothing(_: Seeds, __: Path) -> tuple[object, ...]:
    return ()


ARGUMENTS: dict[str, Callable[[Seeds, Path], tuple[object, ...]]] = {
    "migrate": nothing,
    "status": nothing,
    "fence": lambda _, __: (*WHY, "--writer-min", 1, "--yes"),
    "epoch init": lambda _, __: WHY,
    "epoch rotate": lambda _, __: (*WHY, "--yes"),
    "lanes add": lambda _, __: ("--count", 1),
    "job list": nothing,
    "job show": lambda seeds, _: tuple(seeds.jobs()),
    "job cancel": lambda seeds, _: (*seeds.jobs(count=2), *WHY),
    "queue list": nothing,
    "queue show": lambda seeds, _: (seeds.jobs() and "email",),
    "queue pause": queue,
    "queue resume": queue,
    "queue disable-caller-owned": queue,
    "queue allow-caller-owned": queue,
    "dlq list": nothing,
    "dlq retry": lambda seeds, _: (seeds.dead(queue="retried"), *WHY),
    "dlq purge": lambda seeds, _: (seeds.dead(queue="purged"), *WHY, "--yes"),
    "workers": nothing,
    "ring": nothing,
    "callback list": nothing,
    "callback resume": lambda seeds, _: (seeds.waiting(queue="resumed").id,),
    "callback complete": lambda seeds, _: (seeds.waiting(queue="completed").id,),
    "callback fail": lambda seeds, _: (seeds.waiting(queue="failed").id, *WHY),
    "callback retry": lambda seeds, _: (seeds.waiting(queue="retried").id, *WHY),
    "work list": nothing,
    "work counts": nothing,
    "work show": lambda seeds, _: (seeds.pending().work_id,),
    "work cancel": lambda seeds, _: (seeds.pending().work_id, *WHY),
    "work reconcile": reconcile,
    "work resolve": resolve,
    "work retry-safe": retry_safe,
    "work release": release,
    "work release-all": lambda seeds, _: (seeds.left_behind().scope, *WHY, "--yes"),
    "work purge": lambda _, __: ("--older-than-days", 0, *WHY, "--yes"),
    "scope show": lambda seeds, _: (seeds.pending().scope,),
    "scope disable": lambda seeds, _: (seeds.pending().scope, "--generation", 1, *WHY, "--yes"),
}
ALSO = {"migrate": {"reader"}}
"""Who can see that there is nothing to do needs no more for that."""
ALREADY_DONE = {"epoch init": 1}
"""Refused for another reason once it may: the store has an epoch."""


@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_command_works_with_its_capability_and_with_no_other(
    command: str,
    strict: Provisioned,
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Whoever lacks it is told which and what to grant, and nothing is written."""
    needs = COMMANDS[command]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    asked = (*command.split(), *ARGUMENTS[command](Seeds(strict.database), tmp_path))
    store = identity(strict.admin)
    before = everything(strict.admin)
    others = capabilities() - ALSO.get(command, set())
    strangers = [(each,) for each in sorted(others) if (each,) not in needs]
    for stranger in [(), *strangers]:
        refused = program(strict.login(*stranger), *asked, **store)
        assert_refused(refused, needs, f"`onecommit {command}`")
    assert everything(strict.admin) == before
    for all_of in needs:
        dsn = strict.migrator_dsn if needs == MIGRATOR else strict.login(*all_of)
        done = program(dsn, *asked, **store)
        assert done.code == ALREADY_DONE.get(command, 0), done.said
        assert "42501" not in done.said


def assert_refused(ended: Ended, needs: Needs, what: str) -> None:
    assert (ended.code, ended.out) == (1, "")
    sentence = (
        f"error: 42501: the login lacks the capability {in_words(needs)}, which {what} needs. "
    )
    assert ended.err.startswith(sentence), ended.err
    advice = "owner of the schema" if needs == MIGRATOR else f"`grant onecommit_{needs[0][0]}"
    assert advice in ended.err
    assert ended.err.count("\n") == 1


def test_every_command_with_a_capability_is_tried():
    """A new command cannot be left out; the worker has a test of its own."""
    assert ARGUMENTS.keys() | {"worker"} == {name for name, needs in COMMANDS.items() if needs}


def test_a_worker_starts_with_both_of_its_capabilities_and_not_with_one(
    strict: Provisioned, tmp_path: Path
):
    """It ends with 78 and says which it lacks."""
    view = Seeds(strict.database).pending()
    application = module(view, tmp_path)
    for stranger in sorted(capabilities()):
        refused = worker(strict, application, stranger, directory=tmp_path)
        assert refused.returncode == 78, (stranger, refused.stderr)
        lacking = "maintenance" if stranger == "executor" else "executor"
        assert f"error: 42501: the login lacks the capability {lacking}" in refused.stderr, stranger
        assert "Traceback" not in refused.stderr
    done = worker(strict, application, "executor", "maintenance", directory=tmp_path)
    assert done.returncode == 0, done.stderr


def worker(
    strict: Provisioned, application: str, *roles: str, directory: Path
) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "onecommit",
        "worker",
        application,
        "--once",
        "--queue",
        "idle",
    ]
    environment = {"ONECOMMIT_DSN": strict.login(*roles), **identity(strict.admin)}
    return subprocess.run(
        command, env={"PYTHONPATH": ":".join(sys.path), **environment},
        cwd=directory, text=True, capture_output=True, check=False, timeout=90, stdin=subprocess.DEVNULL,
    )  # fmt: skip
