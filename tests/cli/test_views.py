"""`onecommit workers`, `ring`, `work counts` and `callback`: what an operator sees at a glance, and the answer that got lost."""

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended, Program
from tests.cli.seeds import PAYLOAD, Seeds
from tests.strict import StrictDatabase, database

__all__ = ["database"]
pytestmark = pytest.mark.pg

WHY = ("--reason", "the webhook got lost")


class Shell:
    """The program with one login; it never prints what only handlers read."""

    def __init__(self, program: Program, database: StrictDatabase) -> None:
        self._program = program
        self._database = database

    def __call__(self, *arguments: object, login: str = "operators") -> Ended:
        said_of = self._database.environment(login)
        ended = self._program(said_of["ONECOMMIT_DSN"], *arguments, **said_of)
        assert PAYLOAD not in ended.said
        return ended

    def read(self, *arguments: object) -> Any:
        ended = self(*arguments, "--json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)


@pytest.fixture
def run(program: Program, database: StrictDatabase) -> Shell:
    return Shell(program, database)


@pytest.fixture
def seeds(database: StrictDatabase) -> Seeds:
    return Seeds(database)


def test_workers_are_shown_with_what_they_hold(run: Shell, seeds: Seeds, database: StrictDatabase):
    """Alive, silent or ended, whatever a worker in another language says of itself."""
    assert run.read("workers") == []
    for queue in ("email", "billing", "import"):
        seeds.running(queue=queue)
    with database.connect() as owner:
        for change, name in (
            ("heartbeat_at = now() - interval '1 minute'", "billing"),
            ("ended_at = now()", "import"),
        ):
            owner.execute(f"update onecommit.worker set {change} where name = 'worker-of-{name}'")
        owner.execute(
            "insert into onecommit.worker (worker, name, info, epoch, started_at, heartbeat_at)"
            " values (99, 'other', '{\"queues\": [\"a\", 7]}', 1, now(), now())"
        )
    found = {each["name"]: each for each in run.read("workers")}
    alive = found["worker-of-email"]
    assert (alive["state"], alive["running"], alive["waiting"], alive["work"]) == ("alive", 1, 0, 0)
    assert (alive["host"], alive["pid"], alive["version"]) == ("h", 1, "0")
    assert (alive["queues"], alive["contracts"], alive["leads"]) == (["email"], [], False)
    assert [found[f"worker-of-{name}"]["state"] for name in ("billing", "import")] == [
        "silent", "ended",
    ]  # fmt: skip
    assert (found["other"]["queues"], found["other"]["host"]) == (["a", 7], None)
    table = run("workers").out
    assert all(text in table for text in ("worker-of-import", "silent", "ended", "a, 7"))


def test_the_ring_is_shown_with_what_holds_it_back(
    run: Shell, seeds: Seeds, database: StrictDatabase
):
    """Nobody leads here, and the oldest chapter has a job that nobody has come to."""
    [job] = seeds.jobs()
    shown = run("ring")
    assert shown.code == 0
    assert "slots           1 of 6 in use" in shown.out
    assert "why: no worker leads, so no chapter is opened or reclaimed" in shown.out
    with database.connect() as owner:
        owner.execute("update onecommit.ring set chapter_lifetime = '1us'")
        epoch = owner.execute("select active_epoch from onecommit.store_status()").fetchone()[0]
        owner.execute("select onecommit.tend_ring(%s)", (epoch,))
        owner.execute("update onecommit.leader set worker = 7, until = now() + interval '1 hour'")
    found = run.read("ring")
    assert [(each["chapter"], each["is_head"]) for each in found["chapters"]] == [
        (1, False), (2, True),
    ]  # fmt: skip
    assert found["chapters"][0]["bytes"] > 0
    assert (found["health"]["oldest"], found["health"]["head"], found["health"]["leader"]) == (
        1,
        2,
        7,
    )
    assert found["pins"] == [{"queue": "email", "claimed": False, "attempts": 1, "job_ids": [job]}]
    sentence = f"chapter 1 stays while 1 attempts of queue email are not claimed (jobs {job}, …)"
    assert found["obstacles"] == [sentence]
    assert f"why: {sentence}" in run("ring").out


def test_unfinished_work_is_counted(run: Shell, seeds: Seeds):
    """By contract and state, and by scope where that is asked for."""
    assert run.read("work", "counts") == []
    view = seeds.pending()
    [count] = run.read("work", "counts")
    assert (count["contract_name"], count["state"], count["items"], count["scope"]) == (
        view.contract_name, "pending", 1, None,
    )  # fmt: skip
    assert run.read("work", "counts", "--by-scope", "--scope", view.scope)[0]["scope"] == view.scope
    assert run.read("work", "counts", "--contract", "other") == []
    assert view.contract in run("work", "counts").out
    assert view.scope in run("work", "counts", "--by-scope").out


def test_what_waits_for_an_answer_is_shown_without_its_id(run: Shell, seeds: Seeds):
    callback = seeds.waiting()
    [found] = run.read("callback", "list", "--job", callback.job_id)
    assert (found["job_id"], found["name"], found["queue"]) == (
        callback.job_id,
        "provider",
        "outside",
    )
    shown = run("callback", "list")
    assert "provider" in shown.out
    assert callback.id not in shown.said + json.dumps(found)
    assert run.read("callback", "list", "--queue", "other") == []


def test_an_answer_is_given_once(run: Shell, seeds: Seeds, tmp_path: Path):
    """With a payload from a file; a second one is told so, with exit code 3."""
    callback = seeds.waiting()
    payload = tmp_path / "payload.json"
    payload.write_text(json.dumps({"status": PAYLOAD}))
    resume = ("callback", "resume", callback.id, "--payload", payload)
    done = run(*resume, login="ingress")
    assert (done.code, done.out) == (0, "accepted\n"), done.err
    again = run(*resume, "--json", login="ingress")
    assert (again.code, json.loads(again.out)) == (3, {"answer": "already_resolved"})
    assert run.read("callback", "list") == []


@pytest.mark.parametrize(
    ("command", "options", "state"),
    [
        ("complete", (), "completed"),
        ("fail", WHY, "dead"),
        ("retry", (*WHY, "--delay-seconds", 60), "scheduled"),
    ],
)
def test_the_job_can_be_decided_instead(
    run: Shell, seeds: Seeds, command: str, options: tuple[object, ...], state: str
):
    callback = seeds.waiting()
    done = run("callback", command, callback.id, *options, login="ingress")
    assert (done.code, done.out) == (0, "accepted\n"), done.err
    assert run.read("job", "show", callback.job_id)["job"]["state"] == state


def test_the_id_is_read_from_standard_input(
    run: Shell, seeds: Seeds, monkeypatch: pytest.MonkeyPatch, database: StrictDatabase
):
    """Its first line, so that no other user of the machine sees it; the rest may be the result."""
    callback = seeds.waiting()
    text = f'{callback.id}\n{{"paid": 7}}\n'.encode()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text)))
    done = run("callback", "complete", "-", "--result", "-", login="ingress")
    assert (done.code, done.out) == (0, "accepted\n"), done.err
    with database.connect() as owner:
        detail = owner.execute(
            "select detail from onecommit.get_job(%s)", (callback.job_id,)
        ).fetchone()[0]
    assert json.loads(detail)["result"] == {"paid": 7}


def test_an_id_that_is_none_is_a_sentence(run: Shell):
    """And is not repeated; one that nobody knows is answered as such."""
    wrong = run("callback", "resume", "hunter2", login="ingress")
    assert (wrong.code, wrong.out) == (1, "")
    assert "not a UUID" in wrong.err
    assert "hunter2" not in wrong.err
    unknown = run("callback", "complete", "6a1f2f0e-59b6-4d5c-a5d5-7c5f0c7e0b11", login="ingress")
    assert (unknown.code, unknown.out) == (3, "unknown\n")
