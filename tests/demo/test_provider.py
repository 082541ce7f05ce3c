"""The demo's provider: a process that keeps of each class the promise that the class needs, and no more."""

import json
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from onecommit.demo.children import Children
from onecommit.demo.journal import read_journal
from onecommit.demo.provider import KEY, UNSURE

PATIENCE = 30.0
ANSWERED, DONE, LOST = 1, 3, 4
"""Orders by what becomes of their first call."""


class Caller:
    """Talks to a provider's process."""

    def __init__(self, children: Children, journal: Path) -> None:
        self.journal = journal
        self.port = children.provider(journal)

    def post(self, operation: str, *, key: str, order: int, cents: int = 5) -> str:
        """The receipt."""
        with closing(self._post(operation, key, order, cents)) as connection:
            return json.load(connection.getresponse())["receipt"]

    def post_unanswered(self, operation: str, *, key: str, order: int) -> None:
        """Wait until the provider has written the call down, and see that it says nothing."""
        known = len(read_journal(self.journal))
        with closing(self._post(operation, key, order, 5)) as connection:
            deadline = time.monotonic() + PATIENCE
            while len(read_journal(self.journal)) == known:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            connection.sock.settimeout(0.3)
            with pytest.raises(TimeoutError):
                connection.getresponse()

    def _post(self, operation: str, key: str, order: int, cents: int) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        body = json.dumps({"number": order, "cents": cents})
        connection.request("POST", f"/{operation}", body, {KEY: key})
        return connection

    def look(self, order: int, *, key: str) -> tuple[int, str | None]:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", f"/transfer/{order}", headers={KEY: key})
            answer = connection.getresponse()
            return answer.status, json.load(answer).get("receipt")

    def effects(self) -> list[bool]:
        return [call.effect for call in read_journal(self.journal)]


@pytest.fixture
def provider(tmp_path: Path):
    with Children() as children:
        yield Caller(children, tmp_path / "journal.jsonl")


@pytest.mark.parametrize(
    ("operation", "effects"),
    [
        ("limit", [True, False]),
        ("charge", [True, False]),
        ("transfer", [True, True]),
        ("letter", [True, True]),
    ],
)
def test_what_a_repeated_call_does(provider: Caller, operation: str, effects: list[bool]):
    """Only a charge knows its key and a limit its value; the others are done again."""
    provider.post_unanswered(operation, key="k", order=DONE)
    receipt = provider.post(operation, key="k", order=DONE)
    assert receipt == f"{operation}-{1 + effects[1]}"
    assert provider.effects() == effects


def test_another_value_is_another_effect(provider: Caller):
    """A limit is the same by its value, a charge by its key."""
    for operation in ("limit", "charge"):
        provider.post(operation, key=operation, order=ANSWERED, cents=5)
        provider.post(operation, key=operation, order=ANSWERED, cents=6)
    assert provider.effects() == [True, True, True, False]


def test_a_lost_call_is_not_done(provider: Caller):
    """Neither done nor answered; what repeats it is both."""
    provider.post_unanswered("letter", key="k", order=LOST)
    assert provider.effects() == [False]
    assert provider.post("letter", key="k", order=LOST) == "letter-2"


def test_a_transfer_can_be_looked_up(provider: Caller):
    """Done, not done, or nobody knows today."""
    provider.post_unanswered("transfer", key="done", order=DONE)
    provider.post_unanswered("transfer", key="lost", order=LOST)
    assert provider.look(DONE, key="done") == (200, "transfer-1")
    assert provider.look(LOST, key="lost") == (404, None)
    assert provider.look(UNSURE, key="unsure") == (503, None)
    assert len(provider.effects()) == 2


def test_the_journal_outlives_a_kill(tmp_path: Path):
    """A provider that is started again knows the keys of before, and drops a line that was cut off."""
    journal = tmp_path / "journal.jsonl"
    with Children() as children:
        receipt = Caller(children, journal).post("charge", key="k", order=ANSWERED)
    line = journal.read_text()
    journal.write_text(line + line[: len(line) // 2])
    assert len(read_journal(journal)) == 1
    with Children() as children:
        assert Caller(children, journal).post("charge", key="k", order=ANSWERED) == receipt
    assert [call.effect for call in read_journal(journal)] == [True, False]


def test_it_ends_with_whoever_started_it(tmp_path: Path):
    """Also when that process is killed: its standard input ends."""
    with Children() as children:
        children.provider(tmp_path / "journal.jsonl")
        [process] = children._all
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
