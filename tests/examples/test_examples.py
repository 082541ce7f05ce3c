"""Each example does what it says: it checks its own result and ends with a line that says so."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters import MAJORS, Clusters
from tests.drivers.sql_callers import NODE, NODE_DRIVER, require
from tests.strict import StrictDatabase, strict_database

pytestmark = pytest.mark.pg

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.fixture
def database(clusters: Clusters) -> Iterator[StrictDatabase]:
    """A strict store on the newest major: examples show the API, not the server."""
    with strict_database(clusters.get(max(MAJORS))) as fresh:
        yield fresh


def run(example: Path, database: StrictDatabase) -> subprocess.CompletedProcess[str]:
    """Run it as a reader would, with ONECOMMIT_DSN set so that it starts no server."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ONECOMMIT_", "PG"))}
    if "node" in example.stem:
        environment |= environment_of_node()
    return subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        env=environment | database.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def environment_of_node() -> dict[str, str]:
    """Node and its driver as `make setup` has installed them."""
    require(NODE_DRIVER)
    return {"PATH": f"{NODE.parent}:{os.environ['PATH']}", "NODE_PATH": str(NODE_DRIVER.parent)}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_what_it_checked(example: Path, database: StrictDatabase):
    """A reader who runs an example sees exit code 0 and a closing line, and no warning on the way."""
    ended = run(example, database)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("ok: "), ended.stdout
    assert "Warning" not in ended.stderr


def test_an_example_may_be_run_again_on_the_same_database(database: StrictDatabase):
    """What an earlier run left in the tables is not in the way."""
    example = FOLDER / "settle_invoices_psycopg.py"
    assert [run(example, database).returncode for _ in range(2)] == [0, 0]


def test_an_example_fails_when_its_promise_does_not_hold(tmp_path: Path, database: StrictDatabase):
    """The closing line is worth something: a handler that forgets its write is found out."""
    text = (FOLDER / "settle_invoices_psycopg.py").read_text()
    broken = tmp_path / "broken.py"
    broken.write_text(text.replace('return "settled"', 'return "open"'))
    ended = run(broken, database)
    assert ended.returncode != 0
    assert "ok: " not in ended.stdout


def test_the_first_program_of_the_readme_runs_as_it_stands(tmp_path: Path):
    """Nothing is set and nothing prepared; it prints what the page says, and nothing else."""
    text = (FOLDER.parent / "README.md").read_text()
    program, printed = re.findall(
        r"^```(?:python|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )[:2]
    (tmp_path / "first.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, "-W", "error", "first.py"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith(("ONECOMMIT_", "PG"))},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, printed, "")


def test_the_index_lists_every_example():
    """A reader finds each example from the folder's own page."""
    index = (FOLDER / "README.md").read_text()
    packages = [path.parent for path in FOLDER.glob("*/__main__.py")]
    assert packages
    assert [path.name for path in EXAMPLES + packages if f"({path.name}" not in index] == []


def test_the_page_of_the_service_lists_every_file():
    """A reader finds what each file of the payments service is responsible for."""
    page = (FOLDER / "payments" / "README.md").read_text()
    files = {path.name for path in (FOLDER / "payments").glob("[a-z]*.py")}
    assert {name for name in files if f"]({name})" not in page} == set()
