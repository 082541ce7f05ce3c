"""Nonsense on a command line or in its environment: a documented exit code, a line that says what is wrong, nothing written."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from onecommit.cli.application import load_app
from onecommit.cli.capabilities import COMMANDS

from tests.cli.conftest import MODULES, Program, everything
from tests.clusters import MAJORS, Clusters
from tests.nonsense import SECRET
from tests.strict import StrictDatabase, strict_database

pytestmark = pytest.mark.pg

WHY = ("--reason", "a test")
BYTES = "x\udcff"
"""An argument that is no UTF-8, as Python reads it."""
IDS = ("abc", "1.5", "", "0x10", "1e3", "٣x", "9" * 20, "9" * 5000, BYTES)
NUMBERS = (*IDS, "0", str(10**30), "-1")
SECONDS = ("abc", "", "nan", "inf", "-inf", "0", "-1", "1e300", "1h", BYTES)
WHO = ("", " ", BYTES)
CALLBACK = "6a1f2f0e-59b6-4d5c-a5d5-7c5f0c7e0b11"
IDENTIFIERS = ("a b", "x" * 300, "ä", BYTES)
ON_WORK = ("--command-id", "c", *WHY)

# A command that is right, and what may not stand at an option or (None) in the place of its first argument.
TABLE: list[tuple[tuple[str, ...], dict[str | None, tuple[str, ...]]]] = [
    (("job", "list"), {"--state": ("lost", "", BYTES), "--queue": (BYTES,), "--kind": (BYTES,), "--limit": NUMBERS, "--before": IDS}),
    (("job", "show"), {None: IDS}),
    (("job", "cancel", *WHY), {None: IDS, "--actor": WHO, "--reason": WHO}),
    (
        ("job", "cancel", "--queue", "q", "--yes", *WHY),
        {"--kind": (BYTES,), "--tag": (BYTES,), "--state": ("lost", "", "completed"), "--limit": (*NUMBERS, "10001")},
    ),
    (
        ("callback", "list"),
        {"--job": IDS, "--queue": (BYTES,), "--kind": (BYTES,), "--limit": NUMBERS, "--before": IDS},
    ),
    *(
        (("callback", name, *why), {None: ("abc", "", "1", BYTES)})
        for name, why in (("resume", ()), ("complete", ()), ("fail", WHY), ("retry", WHY))
    ),
    (("callback", "resume", CALLBACK), {"--payload": ("/nowhere", "/", "", "/dev/null")}),
    (("callback", "complete", CALLBACK), {"--result": ("/nowhere", "/", "", "/dev/null")}),
    (("callback", "retry", CALLBACK, *WHY), {"--delay-seconds": SECONDS[:5] + SECONDS[6:], "--reason": (BYTES,)}),
    (("queue", "show"), {None: ("nowhere", "", BYTES)}),
    *(
        (("queue", name, *WHY), {None: ("nowhere", "", BYTES), "--actor": WHO, "--reason": WHO})
        for name in ("pause", "resume", "disable-caller-owned", "allow-caller-owned")
    ),
    (("dlq", "list"), {"--queue": (BYTES,), "--kind": (BYTES,), "--limit": NUMBERS, "--before": IDS}),
    (("dlq", "retry", *WHY), {None: IDS, "--actor": WHO, "--reason": WHO}),
    (("dlq", "purge", *WHY, "--yes"), {None: IDS, "--actor": WHO, "--reason": WHO}),
    (("work", "list"), {"--scope": (BYTES,), "--state": ("lost", ""), "--contract": (BYTES,), "--limit": NUMBERS, "--before": IDS}),
    (("work", "show"), {None: IDS}),
    (("work", "counts"), {"--scope": (BYTES,), "--contract": (BYTES,), "--limit": NUMBERS}),
    (("work", "cancel", *ON_WORK), {None: IDS, "--actor": WHO, "--reason": WHO, "--command-id": IDENTIFIERS}),
    (("work", "reconcile", *ON_WORK), {None: IDS, "--lease-seconds": SECONDS}),
    (
        ("work", "resolve", "1", "--revision", "1", "--not-applied", *ON_WORK),
        {"--revision": IDS, "--applied": ("/nowhere", "/", ""), "--proof": ("/nowhere", "/", "")},
    ),
    (("work", "retry-safe", "1", *ON_WORK), {"--revision": IDS}),
    (("work", "release", "1", *ON_WORK), {"--revision": IDS}),
    (
        ("work", "release-all", "--yes", *ON_WORK),
        {None: ("", *IDENTIFIERS), "--limit": NUMBERS, "--contract": (BYTES,), "--version": (BYTES,)},
    ),
    (("work", "purge", "--yes", *WHY), {"--older-than-days": SECONDS[:5] + SECONDS[6:], "--limit": NUMBERS}),
    (("scope", "show"), {None: ("nowhere", "", BYTES)}),
    (("scope", "disable", "--yes", *ON_WORK), {None: ("", *IDENTIFIERS)}),
    (("scope", "disable", "s", "--yes", *ON_WORK), {"--generation": IDS}),
    (("status",), {"--schema": ("", "pg_x", 'a"b', "x" * 64, BYTES), "--dsn-file": ("/nowhere", "/", "")}),
    (("doctor",), {"--schema": ("", "pg_x", 'a"b', "x" * 64, BYTES), "--dsn-file": ("/nowhere", "/", "")}),
    *(((name,), {"--schema": ("", 'a"b', "x" * 64, BYTES)}) for name in ("workers", "ring")),
    (("queue", "list"), {"--schema": ("", 'a"b', "x" * 64, BYTES), "--dsn-file": ("/nowhere", "/", "")}),
    (("migrate",), {"--from": NUMBERS[:6], "--wait": SECONDS, "--store-id": ("abc", "", BYTES), "--schema": ("", "pg_x")}),
    (("migrate", "--script"), {"--from": (*IDS, "999", "-1")}),
    (("migrate", "--init"), {"--reason": WHO, "--actor": WHO[1:]}),
    (("epoch", "init", *WHY), {"--store-id": ("abc",), "--actor": WHO, "--reason": WHO, "--wait": SECONDS}),
    (("epoch", "rotate", "--yes", *WHY), {"--expected": NUMBERS}),
    (("epoch", "rotate", "--yes", "--expected", "1", *WHY), {"--actor": WHO, "--reason": WHO, "--wait": SECONDS}),
    (("fence", "--yes", *WHY), {"--writer-min": NUMBERS, "--actor": WHO, "--reason": WHO, "--wait": SECONDS}),
    (("lanes", "add"), {"--count": (*NUMBERS, "1024")}),
    (("provision", "--print"), {"--role": ("", "x", "=", "reader=", "nobody=x", "reader=" + "x" * 64, f"reader={BYTES}"), "--profile": ("lost", ""), "--schema": ("", "pg_x")}),
    (("demo",), {"--invoices": (*NUMBERS, "99")}),
    (
        ("worker", "x:app"),
        {
            "--queue": ("", ":5", "a:0", "a:99999", "x" * 201, "a\nb", BYTES),
            "--work": ("", ":5", "a b", "a:0", "a:" + "9" * 5000, BYTES),
            "--processes": (*NUMBERS, "257"),
            "--threads": NUMBERS,
            "--drain-seconds": SECONDS,
            "--rescue-seconds": SECONDS,
            "--application-connections": NUMBERS,
            "--shared-pool": NUMBERS,
            "--metrics-port": (*NUMBERS, "65536"),
            "--metrics-host": ("", BYTES),
            "--log-format": ("lost", "", BYTES),
            "--name": ("x" * 201, "a\nb", BYTES),
        },
    ),
    (
        ("embedded", "start"),
        {"--set": ("", "x", "=1", "port=1", "a b=1", f"work_mem={BYTES}"), "--bin-dir": ("/nowhere", ""), "--data-dir": ("/dev/null", "/proc", "")},
    ),
    (("embedded", "stop"), {"--mode": ("lost", "")}),
    (("embedded", "dsn"), {"--data-dir": ("/dev/null", "/nowhere", "")}),
]  # fmt: skip


def test_no_command_is_left_out():
    """Each stands in the table, but for those that take hardly anything, or everything."""
    groups = {command.split()[0] for command in COMMANDS if " " in command}
    listed = {" ".join(right[: 2 if right[0] in groups else 1]) for right, _ in TABLE}
    assert COMMANDS.keys() - listed == {"embedded status", "embedded psql"}


@pytest.fixture(scope="module")
def database(clusters: Clusters) -> Iterator[StrictDatabase]:
    """One strict store for the module, of one major: hardly a line gets as far as the server, and nothing is written."""
    with strict_database(clusters.get(MAJORS[-1])) as fresh:
        yield fresh


class Shell:
    """Command lines that must be refused, on one store, by somebody who may do everything."""

    def __init__(self, program: Program, database: StrictDatabase) -> None:
        self._program = program
        self._database = database
        self._faults: list[str] = []

    def refuses(self, *command: str, **environment: str) -> None:
        """Note what is wrong with how the command ends."""
        try:
            ended = self._program(self._database.migrator_dsn, *command, **environment)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is a traceback
            self._fault(command, environment, f"{type(error).__qualname__}: {error}")
            return
        if ended.code not in (1, 2, 3) or ended.out or not ended.err or "Traceback" in ended.said:
            self._fault(command, environment, f"{ended.code}: {ended.out} {ended.err}")
        if SECRET in ended.said or "only-for-tests" in ended.said:
            self._fault(command, environment, f"says the value: {ended.err}")
        if ended.code == 1 and not ended.err.splitlines()[-1].startswith("error: "):
            self._fault(command, environment, ended.err)

    def _fault(self, command: tuple[str, ...], environment: dict[str, str], what: str) -> None:
        line = " ".join(f"{each!r:.40}" for each in command)
        self._faults.append(f"{line} {environment or ''}: {what[:400]}")

    def check(self, before: dict[str, str]) -> None:
        """Nothing was wrong and nothing was written."""
        assert not self._faults, "\n".join(self._faults)
        with self._database.connect() as admin:
            assert everything(admin) == before


@pytest.fixture
def shell(
    program: Program, database: StrictDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with database.connect() as admin:
        before = everything(admin)
    shell = Shell(program, database)
    yield shell
    shell.check(before)


@pytest.mark.parametrize(("right", "wrong"), TABLE, ids=[" ".join(right[:2]) for right, _ in TABLE])
def test_an_argument_is_refused(
    shell: Shell, right: tuple[str, ...], wrong: dict[str | None, tuple[str, ...]]
):
    for option, values in wrong.items():
        for value in values:
            if option is None:
                shell.refuses(*right, "--", value)
            else:
                shell.refuses(*right, f"{option}={value}")


@pytest.mark.parametrize(
    "command", [("job", "list"), ("work", "list"), ("queue", "pause", "q", *WHY)]
)
def test_the_environment_is_refused(shell: Shell, command: tuple[str, ...]):
    for variables in (
        *({"ONECOMMIT_STORE_ID": value} for value in ("abc", " ", BYTES)),
        *(
            {"ONECOMMIT_EPOCH": value}
            for value in ("abc", " ", "0", "-1", "1.5", "9" * 20, "9" * 5000, BYTES)
        ),
        *(
            {"ONECOMMIT_DSN": value}
            for value in ("nonsense", f"host={BYTES}", f"postgresql://{SECRET}@[", f"{SECRET} = =")
        ),
        *({"ONECOMMIT_SCHEMA": value} for value in ('a"b', "x" * 64, BYTES)),
    ):
        shell.refuses(*command, **variables)


def test_the_environment_of_the_owners_commands_is_refused(shell: Shell):
    for command in (
        ("migrate",),
        ("status",),
        ("doctor",),
        ("lanes", "add"),
        ("epoch", "init", *WHY),
        ("fence", "--yes", *WHY),
    ):
        for value in ("nonsense", f"host={BYTES}", f"postgresql://{SECRET}@[", f"{SECRET} = ="):
            shell.refuses(*command, ONECOMMIT_DSN=value)
        shell.refuses(*command, ONECOMMIT_SCHEMA=BYTES)
    shell.refuses("migrate", ONECOMMIT_STORE_ID="abc")
    shell.refuses("queue", "pause", "q", *WHY, ONECOMMIT_ACTOR=BYTES)
    shell.refuses("epoch", "init", *WHY, ONECOMMIT_ACTOR=BYTES)


def test_a_worker_whose_environment_is_nonsense_is_not_started_again(
    database: StrictDatabase, tmp_path: Path
):
    """Exit code 78, which supervisors know, and no traceback."""
    (tmp_path / "tasks.py").write_text(
        "from onecommit import App\napp = App()\n@app.job()\nasync def send(ctx): ...\n"
    )
    for name in ("ONECOMMIT_EPOCH", "ONECOMMIT_STORE_ID"):
        given = database.environment() | {name: "abc"}
        ended = subprocess.run(
            [sys.executable, "-m", "onecommit", "worker", "tasks:app"], env=os.environ | given,
            cwd=tmp_path, text=True, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        assert (ended.returncode, ended.stdout) == (78, ""), ended.stderr
        assert ended.stderr.splitlines()[-1].startswith(f"error: 22023: {name} is not a")
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("path", ["tasks.py:app", "myproject/tasks:app", "tasks"])
def test_a_file_in_the_place_of_a_module_is_told_how_to_be_written(path: str):
    with pytest.raises(typer.BadParameter, match=r"myproject\.tasks:app for"):
        load_app(path)


def test_an_app_that_is_none_is_refused(shell: Shell, tmp_path: Path):
    (tmp_path / f"{MODULES}nothing.py").write_text("app = object()\n")
    for app in ("", "x", ":", "x:", ":y", ".:a", "..:a", "a..b:app", "no_such_module:app", "os:path", "json:dumps", f"{MODULES}nothing:app", f"{MODULES}nothing:app.x", f"{BYTES}:app", "a/b:app"):  # fmt: skip
        shell.refuses("job", "list", f"--app={app}")
        shell.refuses("worker", "--", app)
