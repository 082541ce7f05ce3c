"""The commands of the payments tutorial, typed one after the other into a service that nobody has used."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.payments_service import FOLDER, SECRETS, TOKENS, Service, running
from tests.strict import StrictDatabase, database

__all__ = ["database"]
pytestmark = pytest.mark.pg

PAGE = Path(__file__).resolve().parents[2] / "docs/tutorial/payments.md"
LISTED = 'curl -s -H "Authorization: Bearer trial-ada" localhost:8000/operators/work'
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    """Each command between the first webhook and the last look at the books, and the lines that it answers."""
    page = PAGE.read_text()
    told = page[page.index("## 3.") : page.index("## 8.")].replace("\\\n", "")
    found: list[tuple[str, list[str]]] = []
    for line in "".join(CONSOLE.findall(told)).splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def typed(service: Service, command: str) -> str:
    """What the command prints; curl's options are those of the page."""
    words = shlex.split(command.partition(" | ")[0])
    if words[0] != "curl":
        environment = {
            "PAYMENTS_URL": str(service.http.base_url),
            "PAYMENTS_WEBHOOK_SECRET": SECRETS["PAYMENTS_WEBHOOK_SECRET"],
        }
        run = subprocess.run(
            [sys.executable, *words[1:]],
            cwd=FOLDER,
            env=environment,
            capture_output=True,
            text=True,
        )
        return run.stdout.rstrip("\n") or run.stderr
    options = dict(zip(words[2:-1:2], words[3:-1:2], strict=True))
    [token] = re.findall("Bearer trial-([a-z]+)", command) or [None]
    headers = {} if token is None else {"Authorization": f"Bearer {TOKENS[token]}"}
    host, _, path = words[-1].partition("/")
    client = service.http if host == "localhost:8000" else service.provider
    if "-d" in options:
        headers["Content-Type"] = "application/json"
    method = "POST" if {"-d", "-X"} & set(options) else "GET"
    return client.request(method, f"/{path}", headers=headers, content=options.get("-d")).text


def test_a_reader_sees_what_the_page_shows(database: StrictDatabase):
    """Numbers of Work and revisions included: they stand in the later commands."""
    with running(database) as service:
        for command, answer in commands():
            if "/operators/work |" in command:
                service.until(lambda: "ASDUR106" in typed(service, LISTED))
                [listed] = json.loads(typed(service, LISTED))
                shown = json.loads("".join(line for line in answer if "…" not in line))
                assert [listed] == [listed | shown[0]]
                continue
            said = typed(service, command)
            for line in answer:
                assert said.startswith(line.partition("…")[0].rstrip(" ")), command
