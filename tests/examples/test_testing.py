"""The tests of examples/testing, run as an application's own: in their folder, with nothing set."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pg

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "testing"


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest there, as the page says."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("ONECOMMIT_", "PG", "PYTEST_"))
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_the_tests_of_the_example_pass():
    """They leave nothing behind for each other, and no warning."""
    ended = run(FOLDER)
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout
    assert "arning" not in ended.stdout


def test_they_find_an_application_that_does_not_do_what_it_says(tmp_path: Path):
    """A customer who is not welcomed, a handler that raises, a row that is not written: each test can fail."""
    folder = Path(shutil.copytree(FOLDER, tmp_path / "shop"))
    shop = folder / "shop.py"
    text = shop.read_text()
    for good, bad in (
        ("send_welcome.in_tx(conn).enqueue(name=name)", "pass"),
        ("set greeted = true", "set greeted = false"),
        ("delivered in attempt {ctx.attempt}", "delivered"),
    ):
        assert good in text
        text = text.replace(good, bad)
    shop.write_text(text)
    ended = run(folder)
    assert ended.returncode == 1
    assert "3 failed, 1 passed" in ended.stdout, ended.stdout
