"""`onecommit job`, `queue` and `dlq`, as an operator at night: why does it not run, and what can be done."""

import json
from datetime import timedelta
from io import StringIO

import pytest

from tests.cli.conftest import Ended, Program
from tests.cli.seeds import PAYLOAD, Seeds
from tests.strict import StrictDatabase, database

__all__ = ["database"]
pytestmark = pytest.mark.pg

WHY = ("--reason", "the provider is down")


@pytest.fixture
def run(program: Program, database: StrictDatabase):
    """The program with an operator's login; it never prints what only handlers read."""
    said_of = database.environment("operators")

    def invoke(*arguments: object) -> Ended:
        ended = program(said_of["ONECOMMIT_DSN"], *arguments, **said_of)
        assert PAYLOAD not in ended.said
        return ended

    return invoke


@pytest.fixture
def seeds(database: StrictDatabase) -> Seeds:
    return Seeds(database)


def why(ended: Ended) -> list[str]:
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    return [line.removeprefix("why: ") for line in lines if line.startswith("why: ")]


def proposed(ended: Ended) -> list[str]:
    [line] = [line for line in ended.out.splitlines() if line.startswith("next: onecommit ")]
    return line.removeprefix("next: onecommit ").replace("'...'", "why").split()


def action_of(database: StrictDatabase) -> tuple[str, str, str, str]:
    """The last thing that an operator did, as the store keeps it."""
    with database.connect() as owner:
        return owner.execute(
            "select action, subject, actor, reason from onecommit.operator_action order by at desc limit 1"
        ).fetchone()


def test_a_ready_job_says_that_nobody_serves_its_queue(run, seeds: Seeds):
    [job] = seeds.jobs()
    shown = run("job", "show", job)
    assert "state         ready" in shown.out
    assert why(shown) == ["no worker lives, so nobody takes it"]
    seeds.running(queue="billing")
    assert why(run("job", "show", job)) == [
        "none of the 1 living workers serves the queue email, so nobody takes it"
    ]
    seeds.running(queue="email")
    [late] = seeds.jobs()
    assert why(run("job", "show", late)) == [
        "it waits for its turn: 1 jobs of the queue are ready and 2 run, on worker-of-email"
    ]


def test_a_paused_queue_is_the_first_reason(run, seeds: Seeds, database: StrictDatabase):
    [job] = seeds.jobs()
    paused = run("queue", "pause", "email", *WHY)
    assert (paused.code, paused.out) == (0, "paused: email\n")
    assert action_of(database) == ("pause_queue", "email", "ada", "the provider is down")
    assert why(run("job", "show", job))[0] == "an operator has paused the queue email"
    assert json.loads(run("queue", "list", "--json").out)[0]["paused"] is True
    resumed = run("queue", "resume", "email", *WHY, "--json")
    assert json.loads(resumed.out) == {"queue": "email", "outcome": "resumed"}
    assert "paused        False" in run("queue", "show", "email").out


def test_scheduled_and_blocked_jobs_say_what_they_wait_for(run, seeds: Seeds):
    [parent] = seeds.jobs(delay=timedelta(hours=1))
    [child] = seeds.jobs(after=parent)
    first, then = why(run("job", "show", parent))
    assert first.startswith("attempt 1 of ")
    assert " is due at " in first
    assert then == "no worker lives, so it will not start then"
    assert why(run("job", "show", child)) == [
        f"it waits for the end of job {parent}, which is scheduled"
    ]


def test_a_running_job_is_cancelled_once(run, seeds: Seeds, database: StrictDatabase):
    """The command that `show` proposes works; a second one answers that it had ended, with exit code 3."""
    job = seeds.running()
    shown = run("job", "show", job)
    assert why(shown) == ["attempt 1 of 20 runs"]
    done = run(*proposed(shown))
    assert (done.code, done.out) == (0, f"cancelled: {job}\n")
    assert action_of(database) == ("cancel_jobs", str(job), "ada", "why")
    again = run("job", "cancel", job, 10**12, *WHY, "--json")
    assert again.code == 3
    assert json.loads(again.out) == [
        {"job_id": job, "result": "already_finished"},
        {"job_id": 10**12, "result": "not_found"},
    ]
    ended = run("job", "show", job)
    assert why(ended) == ["it has ended: cancelled"]
    assert "next: " not in ended.out


def test_all_jobs_of_a_selection_are_cancelled(run, seeds: Seeds, monkeypatch: pytest.MonkeyPatch):
    """Asked for with all that is given, counted by their answers; those of another queue stay."""
    [other] = seeds.jobs(queue="billing")
    jobs = seeds.jobs(count=3, tags=("import",))
    command = ("job", "cancel", "--queue", "email", "--tag", "import", "--state", "ready", *WHY)
    monkeypatch.setattr("sys.stdin", StringIO())
    asked = run(*command)
    assert (asked.code, asked.out.strip()) == (1, "")
    assert "Cancel up to 1000 jobs (queue email; tags import; states ready)? [y/N]" in asked.err
    shown = run(*command, "--preview", "--limit", 2)
    assert (shown.code, shown.out) == (0, f"preview: {jobs[2]}\npreview: {jobs[1]}\n")
    some = run(*command, "--yes", "--limit", 2)
    assert (some.code, some.out) == (
        0, "cancelled: 2 jobs\nthere may be more: these are as many as --limit 2 allows\n",
    )  # fmt: skip
    rest = run(*command, "--yes", "--json")
    assert (rest.code, json.loads(rest.out)) == (0, [{"job_id": jobs[0], "result": "cancelled"}])
    assert run(*command, "--yes").out == "no such job\n"
    assert json.loads(run("job", "show", other, "--json").out)["job"]["state"] == "ready"


def test_a_dead_letter_is_retried_by_the_command_that_is_shown(run, seeds: Seeds):
    """It names the exception's class, never what it says."""
    job = seeds.dead()
    listed = run("dlq", "list", "--queue", "email")
    assert str(job) in listed.out
    assert "handler_error" in listed.out
    assert json.loads(run("dlq", "list", "--kind", "other", "--json").out) == []
    shown = run("job", "show", job)
    assert why(shown) == ["it ended for good in the dead letters: handler_error"]
    assert "exception     BankClosed" in shown.out
    whole = json.loads(run("job", "show", job, "--json").out)
    assert whole["job"]["exception"] == "BankClosed"
    assert whole["why"] == why(shown)
    assert run(*proposed(shown)).out == f"retried: {job}\n"
    missing = run("dlq", "retry", job, *WHY)
    assert (missing.code, missing.out) == (3, f"not_found: {job}\n")


def test_a_purge_is_asked_for(run, seeds: Seeds, monkeypatch: pytest.MonkeyPatch):
    """Without somebody to answer nothing is deleted."""
    job = seeds.dead()
    monkeypatch.setattr("sys.stdin", StringIO())
    asked = run("dlq", "purge", job, *WHY)
    assert (asked.code, asked.out.strip()) == (1, "")
    assert "for good? [y/N]" in asked.err
    assert [each["job_id"] for each in json.loads(run("dlq", "list", "--json").out)] == [job]
    assert run("dlq", "purge", job, *WHY, "--yes").out == f"purged: {job}\n"
    assert json.loads(run("dlq", "list", "--json").out) == []


def test_jobs_are_listed_page_by_page_without_arguments(run, seeds: Seeds):
    jobs = seeds.jobs(count=3)
    first = json.loads(run("job", "list", "--limit", 2, "--json").out)
    assert [each["job_id"] for each in first] == jobs[:0:-1]
    assert not {"args", "options", "progress", "detail"} & first[0].keys()
    rest = run("job", "list", "--before", jobs[1], "--state", "ready", "--json")
    assert [each["job_id"] for each in json.loads(rest.out)] == jobs[:1]
    assert json.loads(run("job", "list", "--state", "dead", "--json").out) == []


def test_caller_owned_completion_is_disabled_and_allowed_again(run, seeds: Seeds):
    """`queue show` says who or what keeps the queue from it."""
    seeds.running()
    assert "caller_owned  True" in run("queue", "show", "email").out
    assert run("queue", "disable-caller-owned", "email", *WHY).out == "disabled: email\n"
    shown = json.loads(run("queue", "show", "email", "--json").out)
    assert (shown["queue"]["caller_owned"], shown["queue"]["disabled"]) == (False, True)
    assert [each["name"] for each in shown["workers"]] == ["worker-of-email"]
    assert run("queue", "allow-caller-owned", "email", *WHY).out == "allowed: email\n"
    shown = json.loads(run("queue", "show", "email", "--json").out)
    assert (shown["queue"]["caller_owned"], shown["queue"]["disabled"]) == (True, False)


def test_what_is_not_there_is_a_sentence(run):
    """Exit code 1, and nothing on standard output."""
    for command, said in (
        (("job", "show", 17), "knows no such job"),
        (("job", "show", 2**63), "22023"),
        (("job", "cancel", 2**63, *WHY), "22023"),
        (("dlq", "list", "--before", 2**63), "22023"),
        (("queue", "show", "nowhere"), "no such queue"),
        (("queue", "pause", "nowhere", *WHY), "no such queue"),
        (("queue", "pause", "", *WHY), "no such queue"),
        (("job", "cancel", 17, "--reason", " "), "reason"),
    ):
        refused = run(*command)
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("error: ")
        assert said in refused.err


def test_names_that_look_like_markup_are_printed_as_they_are(run, seeds: Seeds):
    for name in ("[bold]x[/]", "[/nothing]", "naïve ✓"):
        seeds.jobs(queue=name)
        assert name in run("job", "list").out
        assert name in run("queue", "list").out
        assert name in run("queue", "show", name).out
        assert name in run("queue", "pause", name, *WHY).out
