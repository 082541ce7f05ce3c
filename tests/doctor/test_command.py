"""`onecommit doctor`, run as a program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.clusters import Database
from tests.logins import PASSWORD, Logins

ONECOMMIT = Path(sys.executable).with_name("onecommit")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, without anything of ours that names a database."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("PG", "ONECOMMIT_"))}
    return subprocess.run(
        [ONECOMMIT, "doctor", *arguments], env=kept | variables, text=True, capture_output=True, check=False, timeout=90
    )  # fmt: skip


@pytest.mark.pg
def test_the_exit_code_says_whether_a_pipeline_may_go_on(database: Database):
    """0 for a sound store, 1 for findings, which both forms of the report name with a remedy; nothing is changed."""
    sound = run(ONECOMMIT_DSN=database.dsn)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert "profile       single-role" in sound.stdout
    assert "findings      none" in sound.stdout
    with database.connect() as owner:
        owner.execute("alter table onecommit.completion detach partition onecommit.completion_4")
    ill = run(ONECOMMIT_DSN=database.dsn)
    assert (ill.returncode, ill.stderr) == (1, "")
    assert "ring: completion_4 is detached from completion" in ill.stdout
    report = json.loads(run("--json", ONECOMMIT_DSN=database.dsn).stdout)
    [finding] = report["findings"]
    assert (finding["check"], finding["subject"]) == ("ring", "completion_4")
    assert finding["remedy"] in ill.stdout
    assert finding["check"] in report["checks"]


@pytest.mark.pg
def test_strict_asks_for_more(database: Database):
    """What a superuser installed is single-role."""
    strict = run("--strict", "--json", ONECOMMIT_DSN=database.dsn)
    assert strict.returncode == 1
    assert {finding["check"] for finding in json.loads(strict.stdout)["findings"]} == {"ownership"}


@pytest.mark.pg
def test_without_a_verdict_it_says_why(empty_database: Database):
    """3, for no schema, for no server and for no database named; and never a word of the DSN."""
    for arguments, dsn in (
        ((), empty_database.dsn),
        ((), "postgresql://ada:geheim@127.0.0.1:1/db"),
        ((), "no dsn = 'geheim"),
        (("--schema", "a$b"), empty_database.dsn),
        ((), ""),
    ):
        result = run(*arguments, ONECOMMIT_DSN=dsn)
        assert result.returncode == 3, result.stderr
        assert result.stderr.startswith("error: ")
        assert "geheim" not in result.stderr
        assert result.stdout == ""


@pytest.mark.pg
def test_any_login_may_look(shared_logins: Logins):
    """A runtime's login, which can read no table of jobs, sees all that there is to see."""
    login = {"user": shared_logins.role("work_dispatcher"), "password": PASSWORD}
    dsn = make_conninfo(shared_logins.database.dsn, **login)
    result = run("--json", ONECOMMIT_DSN=dsn)
    report = json.loads(result.stdout)
    assert (result.returncode, report["findings"], report["unseen"]) == (0, [], [])


@pytest.mark.pg
def test_a_login_without_grants_says_what_it_could_not_see(database: Database):
    """With --strict that is no verdict, without findings too."""
    role = f"nobody_{database.name}"
    with database.connect() as owner:
        owner.execute(
            sql.SQL("create role {} login password {}").format(sql.Identifier(role), PASSWORD)
        )
        try:
            dsn = make_conninfo(database.dsn, user=role, password=PASSWORD)
            result = run(ONECOMMIT_DSN=dsn)
            assert result.returncode == 0, result.stdout
            assert "not seen      store_status" in result.stdout
        finally:
            owner.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
