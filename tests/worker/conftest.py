"""An App on the test's database, a worker on that App, and what the worker reports."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from onecommit.app.app import App
from onecommit.worker import Worker

from tests.clusters import Cluster
from tests.strict import StrictDatabase, strict_database
from tests.worker.harness import Events, start_worker

StartWorker = Callable[..., Worker]


@pytest.fixture(scope="module")
def database(postgres: Cluster) -> Iterator[StrictDatabase]:
    """One database for all tests of a module: each leaves nothing in its queues that could run."""
    with strict_database(postgres) as fresh:
        yield fresh


@pytest.fixture
async def app(database: StrictDatabase) -> AsyncIterator[App]:
    """An App bound to the test's store, so that nothing has to be adopted."""
    async with App(database.dsn, **database.identity) as bound:
        yield bound


@pytest.fixture
async def events() -> Events:
    """Everything that the test's workers report."""
    return Events()


@pytest.fixture
async def worker_of(app: App, events: Events) -> AsyncIterator[StartWorker]:
    """Start a worker for the App's jobs as they are registered now; it is stopped after the test."""
    started: list[Worker] = []

    async def start(**settings) -> Worker:
        worker = await start_worker(app, events, **settings)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        await worker.stop()
