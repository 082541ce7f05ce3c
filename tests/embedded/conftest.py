"""Directories that the server's user can enter, also when root runs the tests."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clusters import MAJORS, binaries


@contextmanager
def open_directory() -> Iterator[Path]:
    """An empty directory; unlike pytest's own ones it is open to all."""
    directory = Path(tempfile.mkdtemp(prefix="onecommit-test-")).resolve()
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def work_dir() -> Iterator[Path]:
    """An empty directory for one test."""
    with open_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def shared_dir() -> Iterator[Path]:
    """A directory for all tests of a file, so that one cluster serves them all."""
    with open_directory() as directory:
        yield directory


@pytest.fixture(scope="module", params=MAJORS, ids=[f"pg{major}" for major in MAJORS])
def bin_dir(request: pytest.FixtureRequest) -> Path | None:
    """The programs of one major; None means those that the package brings."""
    return binaries(request.param)
