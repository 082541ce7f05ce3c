"""The connections of an App belong to one event loop and one process: others get their own."""

import asyncio
import gc
import os

import pytest

from onecommit import App, JobContext

from tests.strict import StrictDatabase

pytestmark = pytest.mark.pg

BACKENDS = (
    "select pid from pg_stat_activity where application_name like 'onecommit%%' and datname = %s"
)


def backends(database: StrictDatabase) -> set[int]:
    """The server processes that work for an App."""
    with database.connect() as connection:
        return {pid for (pid,) in connection.execute(BACKENDS, (database.name,))}


@pytest.fixture
def app(database: StrictDatabase) -> App:
    """An App that nobody has opened."""
    return App(database.dsn, **database.identity)


def test_one_event_loop_after_another_may_use_an_app(app: App, database: StrictDatabase):
    """And the connections of a loop that has ended are closed, without a complaint of the driver."""

    @app.job()
    async def run(ctx: JobContext) -> None: ...

    async def enqueue() -> int:
        return (await run.enqueue()).job_id

    async def end() -> int:
        async with app:
            return await enqueue()

    jobs = [asyncio.run(enqueue()), asyncio.run(enqueue()), asyncio.run(end())]
    assert len(set(jobs)) == 3
    gc.collect()  # a connection that was left open warns, and warnings are errors


def test_a_forked_process_does_not_use_the_connections_of_its_parent(
    app: App, database: StrictDatabase
):
    """Two processes that write to one connection read each other's answers."""

    @app.job()
    async def run(ctx: JobContext) -> None: ...

    run.sync.enqueue()
    mine = backends(database)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run.sync.enqueue()
            os.write(writer, repr(sorted(backends(database))).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        seen = pipe.read()
    os.waitpid(child, 0)
    assert seen, "the child could not enqueue"
    assert len(mine) == 1
    assert len(seen.split(",")) == 2, "the child has a connection of its own"
    run.sync.enqueue()
    assert backends(database) >= mine, "the end of the child left the parent's connection alone"
    app.sync.close()
