"""The pages show code that exists and list everything that they promise to list."""

import ast
import dataclasses
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer

import onecommit
from onecommit import Unique, cli
from onecommit.app.capabilities import METHODS
from onecommit.cli.capabilities import COMMANDS
from onecommit.doctor.checks import CHECKS
from onecommit.doctor.vital_checks import VITAL_CHECKS
from onecommit.domain.capability import Needs, in_words
from onecommit.domain.settings import StoreSettings
from onecommit.telemetry import events
from onecommit.worker import WorkerSettings

from tests.clusters import MAJORS, Clusters, Database

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MARKED = re.compile(r"^<!-- from: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNS = re.compile(r"^<!-- runs -->\n```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_TOKEN = re.compile(
    r"^<!-- runs with a token -->\n```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def text_of(page: str) -> str:
    return (DOCS / page).read_text()


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS))


@pytest.fixture
def database(clusters: Clusters) -> Iterator[Database]:
    """A migrated database on the newest major."""
    cluster = clusters.get(max(MAJORS))
    with cluster.database(template=cluster.template) as fresh:
        yield fresh


# --- code


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_marked_block_stands_in_its_example(page: Path):
    """What a page says is from an example is there, word for word."""
    missing = [
        block
        for example, block in MARKED.findall(page.read_text())
        if f"\n{block}" not in (ROOT / example).read_text()
    ]
    assert missing == []


def test_the_tutorial_shows_nothing_but_its_example():
    """The blocks of the tutorial, in their order, are the program that it links to."""
    text = text_of("tutorial/first-job.md")
    blocks = PYTHON.findall(text)
    assert [block for _, block in MARKED.findall(text)] == blocks
    example = (ROOT / "examples/settle_invoices_psycopg.py").read_text()
    said, _, code = example.partition("\n\n")
    assert said.startswith('"""')
    assert "".join(blocks).split() == code.split()


def test_the_tutorial_of_the_service_shows_nothing_but_its_files():
    """Every block of code is from the example, so a reader who follows it meets what it shows."""
    text = text_of("tutorial/payments.md")
    blocks = PYTHON.findall(text)
    assert blocks
    assert [block for _, block in MARKED.findall(text)] == blocks


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_python_block_is_python(page: Path):
    """A reader can copy each block; a part of a function is one too."""
    for block in PYTHON.findall(page.read_text()):
        body = block if block[0] != " " else f"if True:\n{block}"
        body = body if not body.rstrip().endswith("-> None:") else f"{body}    ..."
        compile(body, str(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.pg
@pytest.mark.parametrize("page", ["how-to/operate.md", "how-to/write-sql-producers.md"])
def test_the_sql_of_a_page_runs(page: str, database: Database):
    """Whoever pastes the statements of a page into psql gets an answer, from the top to the end."""
    with database.connect() as connection:
        enqueue_email(connection)
        with connection.transaction(force_rollback=True):  # roles outlive the database
            for script in RUNS.findall(text_of(page)):
                for statement in re.sub(r"^(begin|commit);$", "", script, flags=re.MULTILINE).split(
                    ";"
                ):
                    if statement.strip():
                        connection.execute(statement)


@pytest.mark.pg
def test_the_grants_of_the_page_are_enough_and_no_more(database: Database):
    """A producer enqueues, a finalizer completes; neither can do the other's work, or read a table."""
    (complete,) = WITH_TOKEN.findall(text_of("how-to/write-sql-producers.md"))
    enqueue, enqueue_one, grants = RUNS.findall(text_of("how-to/write-sql-producers.md"))
    enqueue = enqueue.replace("begin;", "").replace("commit;", "")
    with database.connect() as connection:
        token = claim_token(connection)
        with connection.transaction(force_rollback=True):
            connection.execute(grants)
            connection.execute("set local role shop_producer")
            (job_ids, created) = connection.execute(enqueue).fetchone()
            assert (len(job_ids), created) == (2, None)
            assert connection.execute(enqueue_one).fetchone() > (job_ids[1],)
            refused(connection, "select * from onecommit.ready")
            connection.execute("set local role shop_finalizer")
            refused(connection, enqueue)
            refused(connection, enqueue_one)
            refused(connection, "select * from onecommit.completion")
            receipt = psycopg.RawCursor(connection).execute(complete, token).fetchone()
            assert receipt[:2] == (1, "completed")
            connection.execute("reset role")
            (status,) = connection.execute(
                "select pg_xact_status(%s::text::xid8)", (receipt[3],)
            ).fetchone()
            assert status == "in progress"


def refused(connection: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
        connection.execute(statement)


def enqueue_email(connection: psycopg.Connection) -> None:
    connection.execute(
        "select onecommit.enqueue_jobs('email', '{send_email}', array['{}'], null, active_epoch)"
        " from onecommit.store_status()"
    )


def claim_token(connection: psycopg.Connection) -> tuple[int, ...]:
    """The token of the only job, claimed as a worker in any language would."""
    enqueue_email(connection)
    (epoch,) = connection.execute("select active_epoch from onecommit.store_status()").fetchone()
    (worker,) = connection.execute(
        "select onecommit.register_worker('sql', %s, %s)",
        ('{"queues": ["email"], "capabilities": ["caller_owned_v1"]}', epoch),
    ).fetchone()
    return connection.execute(
        "select job_ids[1], run_leases[1], claim_slot, receipt_id, batch_id, 1"
        " from onecommit.claim_jobs(%s, 1, 'email', 1, null, null, %s) where status = 'claimed'",
        (worker, epoch),
    ).fetchone()


def test_the_digest_of_a_unique_key_is_as_the_page_says():
    """A producer in another language can make the key that Python makes."""
    arguments = {"to": "ädä@example.com", "n": 1}
    ours = Unique().key_of(arguments, kind="send_email", queue="email").key
    said = json.dumps(
        ["email", "send_email", arguments],
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    assert ours == hashlib.sha256(said.encode()).hexdigest()


# --- completeness


def test_the_generated_parts_are_current():
    """sql.md and errors.md say what the SQL files and the exception classes say."""
    script = ROOT / "tools" / "generate_reference.py"
    checked = subprocess.run([sys.executable, script, "--check"], check=False, capture_output=True)
    assert checked.returncode == 0, checked.stderr.decode()


def test_every_function_that_crosses_a_privilege_boundary_is_listed():
    """What runs with the owner's rights may be called by others, so it is documented."""
    listed = set(re.findall(r"^### (\w+)$", text_of("reference/sql.md"), re.MULTILINE))
    definers = {
        path.stem
        for path in (ROOT / "src/onecommit/sql/routines").rglob("*.sql")
        if "security definer" in path.read_text()
    }
    assert definers - listed == set()


def test_every_check_of_the_doctor_is_listed():
    """Each once, in the table of those of its kind."""
    page = text_of("how-to/doctor.md")
    compared, _, at_work = page.partition("## What is looked at while the store works")
    for part, checks in ((compared, CHECKS), (at_work, VITAL_CHECKS)):
        assert re.findall(
            r"^\| `(\w+)` \| ", part.partition("## What is compared")[2] or part, re.MULTILINE
        ) == [check.name for check in checks]


def test_every_public_name_is_listed():
    page = text_of("reference/python-api.md")
    assert [name for name in onecommit.__all__ if not re.search(rf"`@?{name}\b", page)] == []


def test_every_field_of_the_public_values_is_listed():
    """A reader of the page knows what a JobView holds and which states and outcomes there are."""
    page = text_of("reference/python-api.md")
    words = [*onecommit.JobView.__struct_fields__]
    for states in (onecommit.JobState, onecommit.Outcome, onecommit.JobResult):
        words += [state.value for state in states]
    assert [word for word in words if not re.search(rf"\b{word}\b", page)] == []


def command_options(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every (command, option) below a command, which Typer may build with a click of its own."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from command_options(inner, f"{path} {name}")
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            yield from ((path, option) for option in parameter.opts if option.startswith("-"))


def test_every_command_and_option_is_listed():
    """Each command has its section, and the section each option, if only "as above"."""
    head, *rest = text_of("reference/cli.md").split("\n## ")
    sections = {section.partition("\n")[0]: section for section in rest}
    listed = list(command_options(typer.main.get_command(cli.app), "onecommit"))
    assert ("onecommit worker", "--queue") in listed
    missing = []
    for path, option in listed:
        section = sections.get(" ".join(path.split()[:2]), head)
        if option != "--help" and f"`{option}" not in section:
            missing.append((path, option))
        if path.split()[-1] not in section:
            missing.append((path, ""))
    assert missing == []


def needs_in(page: str) -> dict[str, str]:
    """What the table of capabilities says of each name."""
    section = text_of(page).split("\n## Capabilities\n")[1].split("\n## ", maxsplit=1)[0]
    rows = re.findall(r"^\| (`.*) \| (.*) \|$", section, re.MULTILINE)
    return {
        name: needs.replace("`", "")
        for names, needs in rows
        for name in re.findall(r"`(.*?)`", names)
    }


@pytest.mark.parametrize(
    ("page", "table"), [("reference/cli.md", COMMANDS), ("reference/python-api.md", METHODS)]
)
def test_the_capabilities_of_every_command_and_method_are_listed(
    page: str, table: dict[str, Needs]
):
    """As the table has them, on which a strict store is tried; the help of a command says the same."""
    assert needs_in(page) == {name: in_words(needs) for name, needs in table.items()}


def settings_in(page: str, *, heading: str) -> dict[str, str]:
    """Name and default of each setting in the table below a heading."""
    section = page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE))


def test_every_setting_of_a_worker_is_listed_with_its_default():
    listed = settings_in(text_of("reference/settings.md"), heading="Worker")
    fields = {field.name: field.default for field in dataclasses.fields(WorkerSettings)}
    assert listed.keys() == fields.keys()
    numbers = {name: value for name, value in fields.items() if isinstance(value, int | float)}
    assert {name: float(listed[name]) for name in numbers} == numbers


def test_every_setting_of_an_app_is_listed():
    page = text_of("reference/settings.md")
    fields = {field.name for field in dataclasses.fields(StoreSettings)}
    assert {name for name in fields if f"`{name}`" not in page} == set()


def test_every_default_in_the_database_is_as_the_page_says():
    """The table of settings and the migrations agree."""
    listed = re.findall(
        r"^\| `onecommit\.\w+\.(\w+)` \| (.*?) \|", text_of("reference/settings.md"), re.MULTILINE
    )
    migrations = "".join(
        path.read_text() for path in (ROOT / "src/onecommit/sql/migrations").glob("*.sql")
    )
    assert listed
    for name, default in listed:
        assert re.search(rf"\b{name} (interval|bigint) not null default '?{default}\b", migrations)


def test_every_event_is_listed():
    """An operator finds each line of the log in the guide."""
    page = text_of("how-to/run-workers.md")
    names = {
        value.name
        for value in vars(events).values()
        if isinstance(value, type) and issubclass(value, events.Event) and "name" in vars(value)
    }
    assert names
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_every_page_is_reached_from_its_index():
    """A page that no index names would not be found."""
    lost = [
        name_of(page)
        for page in PAGES
        if page.parent != DOCS
        and page.name != "README.md"
        and page.name not in (page.parent / "README.md").read_text()
    ]
    assert lost == []
