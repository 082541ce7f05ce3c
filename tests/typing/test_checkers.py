"""The files of this folder check, and each mistake in them is found: an ignore without one is an error."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = [
    str(HERE / name) for name in ("enqueueing.py", "caller_owned.py", "follow_ups.py", "work.py")
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "checker", [("mypy", "--strict"), ("pyright",)], ids=lambda checker: checker[0]
)
def test_users_are_told_about_mistakes_before_running_anything(checker: tuple[str, ...]):
    ran = subprocess.run(
        [sys.executable, "-m", *checker, *FILES],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
