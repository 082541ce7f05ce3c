"""README's first command: the demo settles every invoice once and doubles no effect while workers die, and its exit code can be trusted."""

import importlib
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from onecommit import Safety, cli
from onecommit.demo import Ledger, WorkLedger

ROOT = Path(__file__).parents[2]

GOOD = Ledger(
    invoices=10,
    settled=10,
    settlements=10,
    invoices_with_settlement=10,
    jobs_completed=10,
    attempts=12,
    rescued=2,
    stale_refused=1,
    stale_committed=0,
    unmatched=0,
)


@pytest.mark.timeout(300)
def test_make_demo_ends_with_a_ledger_that_holds():
    demo = subprocess.run(
        ["make", "demo"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "frozen (SIGSTOP)" in demo.stdout
    assert "killed (SIGKILL)" in demo.stdout
    assert "Each invoice was settled exactly once" in demo.stdout
    assert "killed (SIGKILL) after 12 admissions without an answer" in demo.stdout
    counts = re.findall(r"│ ([A-Z_]{9,})((?: +│ +\d+){6}) │", demo.stdout)
    work = {name: [int(n) for n in re.findall(r"\d+", row)] for name, row in counts}
    assert work.keys() == {safety.name for safety in Safety}
    for accepted, done, waiting, calls, effects, doubled in work.values():
        assert (accepted, doubled) == (8, 0)
        assert done + waiting == 8
        assert done <= effects <= 8 <= calls
    for safe in (Safety.IDEMPOTENT, Safety.PROVIDER_KEYED):
        assert work[safe.name][1:3] == [8, 0]
        assert work[safe.name][3] >= 12, "half of the calls are unanswered, and repeated"
    # Of four transfers that were unknown, one cannot be looked up; letters never can.
    assert work[Safety.RECONCILE_BEFORE_RETRY.name][2] >= 1
    assert work[Safety.MANUAL_RESOLUTION.name][2] >= 4
    assert "    onecommit work reconcile " in demo.stdout
    assert re.search(r"    onecommit work resolve \d+ --revision \d+ .*--not-applied", demo.stdout)


def test_a_ledger_that_holds_breaks_no_promise():
    assert GOOD.violations == []


@pytest.mark.parametrize(
    "flaw",
    [
        {"settled": 9},
        {"settlements": 11},
        {"invoices_with_settlement": 9},
        {"jobs_completed": 9},
        {"stale_committed": 1},
        {"unmatched": 1},
    ],
    ids=str,
)
def test_each_flaw_breaks_a_promise(flaw):
    assert replace(GOOD, **flaw).violations


class _Over:
    """A demo that is over, with the ledgers that it is given."""

    def __init__(self, ledger: Ledger, work: WorkLedger) -> None:
        self.ledger = lambda: ledger
        self.work_ledger = lambda: work
        self.run = list

    def __enter__(self):
        return self

    def __exit__(self, *_): ...


NO_ORDERS = WorkLedger(orders=0, items=(), calls=())


@pytest.mark.parametrize(
    ("ledger", "promise"),
    [
        (replace(GOOD, settlements=11), "no invoice is settled twice"),
        (GOOD, "a worker was killed after an admission"),
    ],
)
def test_a_broken_promise_is_named_and_is_the_exit_code(monkeypatch, ledger, promise):
    """Of either part: a demo that shows nothing has not shown that it holds."""
    command = importlib.import_module("onecommit.cli.demo")
    monkeypatch.setattr(command, "Demo", lambda **_: _Over(ledger, NO_ORDERS))
    shown = CliRunner().invoke(cli.app, ["demo"])
    assert shown.exit_code == 1
    assert re.search(f"^broken: .*{promise}", shown.stdout, re.MULTILINE)
    assert "Each invoice was settled" not in shown.stdout
