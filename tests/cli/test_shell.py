"""What every command does for whoever writes scripts, and that nothing secret is ever printed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from onecommit import Safety, cli
from onecommit.cli.capabilities import COMMANDS

from tests.cli.conftest import MODULES, Program, identity
from tests.cli.seeds import PAYLOAD, Seeds
from tests.clusters import Database
from tests.docs.test_pages import command_options

SECRET = "hunter2-is-the-password"
UNREACHABLE = "host=127.0.0.1 port=1 dbname=app user=app"
WHY = ("--reason", "a test")
CALLBACK = "6a1f2f0e-59b6-4d5c-a5d5-7c5f0c7e0b11"
ON_A_STORE = [name for name, needs in COMMANDS.items() if needs and name != "worker"]
ARGUMENTS = {
    "epoch init": WHY,
    "epoch rotate": ("--expected", 1, *WHY, "--yes"),
    "fence": (*WHY, "--yes"),
    "job show": (1,),
    "job cancel": (1, *WHY),
    "queue show": ("q",),
    "queue pause": ("q", *WHY),
    "queue resume": ("q", *WHY),
    "queue disable-caller-owned": ("q", *WHY),
    "queue allow-caller-owned": ("q", *WHY),
    "dlq retry": (1, *WHY),
    "dlq purge": (1, *WHY, "--yes"),
    "callback resume": (CALLBACK,),
    "callback complete": (CALLBACK,),
    "callback fail": (CALLBACK, *WHY),
    "callback retry": (CALLBACK, *WHY),
    "work show": (1,),
    "work cancel": (1, *WHY),
    "work reconcile": (1, *WHY),
    "work resolve": (1, "--revision", 1, "--not-applied", *WHY),
    "work retry-safe": (1, "--revision", 1, *WHY),
    "work release": (1, "--revision", 1, *WHY),
    "work release-all": ("s", *WHY, "--yes"),
    "work purge": ("--older-than-days", 1, *WHY, "--yes"),
    "scope show": ("s",),
    "scope disable": ("s", "--generation", 1, *WHY, "--yes"),
}


def whole(command: str) -> tuple[object, ...]:
    """A command line that is right, if about nothing that there is."""
    return (*command.split(), *ARGUMENTS.get(command, ()))


def environment(**variables: str) -> dict[str, str]:
    """Ours without anything that names a database."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "ONECOMMIT_"))}
    return kept | {"USER": "ada"} | variables


def spawn(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program as a process of its own, without standard input."""
    return subprocess.run(
        [sys.executable, "-m", "onecommit", *map(str, arguments)],
        env=environment(**variables), text=True, capture_output=True, check=False, timeout=90,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


# --- without a database


@pytest.mark.parametrize(
    "command",
    [
        ("job", "show", "x"),
        ("job", "cancel", *WHY),
        ("job", "cancel", 1),
        ("job", "cancel", 1, "--queue", "q", *WHY),
        ("job", "cancel", 1, "--preview", *WHY),
        ("job", "cancel", "--state", "lost", *WHY),
        ("job", "cancel", "--queue", "q", "--limit", 10_001, *WHY),
        ("job", "list", "--state", "lost"),
        ("job", "list", "--limit", 0),
        ("dlq", "purge", 1, *WHY, "--older"),
        ("queue", "pause", *WHY),
        ("callback", "list", "--job", "x"),
        ("callback", "retry", CALLBACK, "--delay-seconds", "nan", *WHY),
        ("callback", "resume", CALLBACK, "--payload", __file__),
        ("work", "purge", "--older-than-days", "inf", *WHY, "--yes"),
        ("work", "purge", "--older-than-days", "nan", *WHY, "--yes"),
        ("work", "purge", "--older-than-days", 10**9, *WHY, "--yes"),
        ("work", "reconcile", 1, "--lease-seconds", "nan", *WHY),
    ],
)
def test_a_wrong_command_line_is_refused(program: Program, command: tuple[object, ...]):
    """Exit code 2, before anything is asked of the store."""
    refused = program(UNREACHABLE, *command)
    assert (refused.code, refused.out) == (2, ""), refused.said


@pytest.mark.parametrize("command", ON_A_STORE)
def test_a_server_that_is_not_there_is_a_sentence_without_the_dsn(
    command: str, program: Program, tmp_path: Path
):
    """Wherever the DSN comes from, and whatever is wrong with it."""
    unreachable = f"{UNREACHABLE} password={SECRET}"
    file = tmp_path / "dsn"
    file.write_text(f"{unreachable}\n")
    for dsn, options in (
        (unreachable, ()),
        ("", ("--dsn-file", file)),
        (f"postgresql://app:{SECRET}@127.0.0.1:port/app", ()),
        (f"{SECRET} is no connection string", ()),
    ):
        ended = program(dsn, *whole(command), *options)
        assert ended.code == 1, ended.said
        assert ended.out == ""
        assert ended.err.splitlines()[-1].startswith("error: ")
        assert SECRET not in ended.said
        assert "127.0.0.1" not in ended.said
        assert "Traceback" not in ended.said


@pytest.mark.parametrize("text", [b"", b"\n", b"a\nb\n", b"\xff\xfe"])
def test_a_file_without_a_dsn_is_no_way_into_another_database(
    text: bytes, program: Program, tmp_path: Path
):
    """It is refused, and the environment is not asked instead."""
    file = tmp_path / "dsn"
    file.write_bytes(text)
    for command in ("status", "job list"):
        ended = program(UNREACHABLE, *command.split(), "--dsn-file", file)
        assert (ended.code, ended.out) == (1, "")
        assert "dsn-file: the file is not one line of text" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", f"postgresql://app:{SECRET}@db/app"),
        ("migrate", f"--dsn=postgresql://app:{SECRET}@db/app"),
        ("job", "list", f"host=db password={SECRET}"),
        ("job", "list", "--schema", f"postgres+asyncpg://app:{SECRET}@db/app"),
    ],
)
def test_a_connection_string_as_an_argument_is_not_repeated(
    arguments: tuple[str, ...], program: Program
):
    """It is refused with exit code 2 and says where a DSN belongs."""
    ended = program("", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "ONECOMMIT_DSN" in ended.err
    assert SECRET not in ended.err


def test_every_command_on_a_store_takes_the_same_options():
    """--schema and --dsn-file everywhere, --json wherever something is found or decided."""
    listed = list(command_options(cli.typer.main.get_command(cli.app), "onecommit"))
    for command in ON_A_STORE:
        options = {option for path, option in listed if path == f"onecommit {command}"}
        assert {"--schema", "--dsn-file"} <= options, command
        if command.split()[0] not in ("migrate", "epoch", "lanes", "fence"):
            assert "--json" in options, command
        # Whoever answers a callback is not kept: knowing its id is the right to.
        if "--reason" in options and command.split()[0] != "callback":
            assert "--actor" in options, command


# --- on a database


@pytest.mark.pg
def test_libpqs_variables_name_the_database_for_every_command(database: Database):
    """As the page says; also where an App opens the connections."""
    given = conninfo_to_dict(database.dsn)
    names = {
        "host": "PGHOST",
        "port": "PGPORT",
        "user": "PGUSER",
        "password": "PGPASSWORD",
        "dbname": "PGDATABASE",
    }
    variables = {names[name]: str(value) for name, value in given.items() if name in names}
    for command in ("status", "job list", "work list"):
        ended = spawn(*command.split(), "--json", **variables)
        assert ended.returncode == 0, ended.stderr
        json.loads(ended.stdout)


@pytest.mark.pg
def test_an_argument_that_is_no_text_is_refused(database: Database, program: Program):
    for command in (
        ("queue", "pause", "\udcff", *WHY),
        ("scope", "disable", "s", "--generation", 1, "--reason", "\udcff", "--yes"),
    ):
        ended = program(database.dsn, *command)
        assert (ended.code, ended.out) == (2, ""), ended.said
        assert "not text in UTF-8" in ended.err


@pytest.mark.pg
def test_a_reader_that_goes_away_is_no_traceback(database: Database):
    """`onecommit job list | head -0` ends quietly."""
    reading, writing = os.pipe()
    os.close(reading)
    for command in (("job", "list"), ("queue", "list", "--json"), ("status",)):
        ended = subprocess.run(
            [sys.executable, "-m", "onecommit", *command], env=environment(ONECOMMIT_DSN=database.dsn),
            stdout=writing, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, timeout=90,
        )  # fmt: skip
        assert ended.returncode != 0
        assert b"Traceback" not in ended.stderr
        assert b"BrokenPipe" not in ended.stderr
    os.close(writing)


@pytest.mark.pg
def test_without_standard_input_a_question_is_a_no(database: Database):
    """Also where it is closed, as in some service managers."""
    purge = [sys.executable, "-m", "onecommit", "dlq", "purge", "1", *WHY]
    resolve = [
        sys.executable,
        "-m",
        "onecommit",
        "work",
        "resolve",
        "1",
        "--revision",
        "1",
        "--applied",
        "-",
        *WHY,
    ]
    for command, redirection in ((purge, "</dev/null"), (purge, "<&-"), (resolve, "<&-")):
        ended = subprocess.run(
            ["sh", "-c", f'exec "$@" {redirection}', "sh", *command], env=environment(ONECOMMIT_DSN=database.dsn),
            capture_output=True, text=True, check=False, timeout=90,
        )  # fmt: skip
        assert ended.returncode == 1, ended
        assert ended.stdout.strip() == ""
        assert "Traceback" not in ended.stderr


@pytest.mark.pg
def test_the_app_and_the_options_must_not_disagree(
    database: Database, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """--app brings its database and its schema."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / f"{MODULES}shell.py").write_text("from onecommit import App\napp = App()\n")
    app = ("job", "list", "--app", f"{MODULES}shell:app")
    assert program(database.dsn, *app).code == 0
    file = tmp_path / "dsn"
    file.write_text(database.dsn)
    for option in (("--schema", "other"), ("--dsn-file", file)):
        refused = program(database.dsn, *app, *option)
        assert (refused.code, refused.out) == (2, "")
        assert "of its own" in refused.err


@pytest.mark.pg
def test_no_command_prints_a_payload_or_the_dsn(database: Database, program: Program):
    """Over jobs and Work whose payloads are a known text, and a login whose password is one."""
    seeds = Seeds(database)
    jobs = [*seeds.jobs(), seeds.running(queue="b"), seeds.dead(queue="c")]
    work = seeds.work(Safety.MANUAL_RESOLUTION)
    login = f"owner_{database.name}"
    with database.connect() as admin:
        admin.execute(
            sql.SQL("create role {} superuser login password {}").format(
                sql.Identifier(login), SECRET
            )
        )
        dsn = make_conninfo(database.dsn, user=login, password=SECRET)
        lines = [
            *(whole(command) for command in ON_A_STORE if command not in ("epoch rotate", "scope disable")),
            *(("job", "show", job) for job in jobs),
            *(("job", "show", job, "--json") for job in jobs),
            ("job", "list", "--json"), ("dlq", "list", "--json"), ("queue", "show", "b", "--json"),
            ("work", "show", work.work_id), ("work", "show", work.work_id, "--json"),
            ("work", "list", "--json"), ("scope", "show", work.scope, "--json"),
            ("doctor",), ("doctor", "--json", "--strict"),
            ("dlq", "retry", *jobs, *WHY), ("job", "cancel", *jobs, *WHY),
            ("job", "cancel", "--queue", "b", "--yes", *WHY),
            ("workers", "--json"), ("ring", "--json"), ("callback", "list", "--json"),
            ("work", "counts", "--by-scope", "--json"),
        ]  # fmt: skip
        for line in lines:
            ended = program(dsn, *line, **identity(admin))
            assert SECRET not in ended.said, line
            assert PAYLOAD not in ended.said, line
            assert "cents" not in ended.said, line
            assert "Traceback" not in ended.said, line
            if "--json" in line:
                json.loads(ended.out)
        admin.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(login)))
