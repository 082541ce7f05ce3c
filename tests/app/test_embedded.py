"""App.embedded(): a store of its own, made by the first operation."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from onecommit import App, JobContext
from onecommit.embedded import Server

pytestmark = pytest.mark.pg


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A place that the server's own user can reach, unlike pytest's private folders."""
    with TemporaryDirectory(prefix="onecommit-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"


def test_an_embedded_app_needs_nothing_prepared(data_dir: Path):
    """Server, schema and epoch are there when the first job is enqueued; a second App shares them."""
    app = App.embedded(data_dir)

    @app.job()
    async def send(ctx: JobContext, to: str) -> None: ...

    async def enqueue() -> int:
        async with app:
            enqueued = await send.enqueue(to="a")
            with App.embedded(data_dir).sync as other:
                assert other.jobs.list()[0].job_id == enqueued.job_id
            return enqueued.job_id

    first, second = asyncio.run(enqueue()), asyncio.run(enqueue())
    assert first < second
    assert Server.find(data_dir) is None


def test_registering_on_an_embedded_app_starts_nothing(tmp_path: Path):
    app = App.embedded(tmp_path / "data")

    @app.job()
    async def send(ctx: JobContext) -> None: ...

    assert not (tmp_path / "data").exists()
