"""README's first command: the demo settles every invoice once while workers die, and its exit code can be trusted."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from onecommit.demo import Ledger

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
