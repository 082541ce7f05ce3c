"""Tasks that enqueue one kind of job at the same time: what they share, and what they do not."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from onecommit import App, InvalidArgument, JobContext
from onecommit.app.gathering import Gathering
from onecommit.app.job import Job
from onecommit.errors import StoreUnavailable
from onecommit.store.async_store import AsyncStore

from tests.strict import StrictDatabase

pytestmark = pytest.mark.pg

_WAITING = """
    select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query ~ 'enqueue_job'
"""
_SEVERAL = 4
"""Calls of one job that go before others gather."""


class Holder:
    """Holds every enqueue up until it lets go."""

    def __init__(
        self, connection: psycopg.AsyncConnection, observer: psycopg.AsyncConnection
    ) -> None:
        self._connection = connection
        self._observer = observer

    async def held(self, *, but: tuple[int, ...] = ()) -> list[int]:
        """The sessions that are seen to wait."""
        cursor = await self._observer.execute(_WAITING)
        return [pid for (pid,) in await cursor.fetchall() if pid not in but]

    async def until_held(self, count: int, *, but: tuple[int, ...] = ()) -> list[int]:
        async with asyncio.timeout(30):
            while len(pids := await self.held(but=but)) != count:
                await asyncio.sleep(0.005)
        return pids

    async def kill(self, pid: int) -> None:
        await self._observer.execute("select pg_terminate_backend(%s)", (pid,))

    async def let_go(self) -> None:
        await self._connection.execute("commit")


@pytest.fixture
async def holder(database: StrictDatabase) -> AsyncIterator[Holder]:
    connect = psycopg.AsyncConnection.connect
    async with (
        await connect(database.observer_dsn, autocommit=True) as connection,
        await connect(database.observer_dsn, autocommit=True) as observer,
    ):
        await connection.execute("begin; lock table onecommit.ready in access exclusive mode")
        yield Holder(connection, observer)


@pytest.fixture
async def store(database: StrictDatabase) -> AsyncIterator[AsyncStore]:
    async with _app(database) as app:
        yield await app._stores.async_store()


@asynccontextmanager
async def _app(database: StrictDatabase) -> AsyncIterator[App]:
    async with App(database.dsn, **database.identity, max_connections=10) as app:
        yield app


def _send(app: App) -> Job:
    @app.job(queue="email")
    async def send(ctx: JobContext, n: int) -> None: ...

    return send


async def _begun(work: "list[asyncio.Task]", holder: Holder) -> list[int]:
    """The sessions of the first calls, when all tasks have come as far as they can."""
    pids = await holder.until_held(min(len(work), _SEVERAL))
    for _ in range(3):
        await asyncio.sleep(0)
    return pids


def _jobs_by_transaction(database: StrictDatabase) -> list[int]:
    with database.connect() as connection:
        rows = connection.execute("select xmin::text from onecommit.ready_1").fetchall()
    return sorted(Counter(rows).values())


async def test_tasks_beyond_the_first_few_share_one_transaction_and_each_gets_its_own_job(
    database: StrictDatabase, holder: Holder
):
    async with _app(database) as app:
        send = _send(app)
        work = [asyncio.create_task(send.enqueue(n=n)) for n in range(10)]
        await _begun(work, holder)
        assert len(await holder.held()) == _SEVERAL
        await holder.let_go()
        for n, enqueued in enumerate(await asyncio.gather(*work)):
            job = await app.jobs.get(enqueued.job_id)
            assert job is not None
            assert enqueued.created
            assert (job.kind, job.args) == ("send", {"n": n})
    assert _jobs_by_transaction(database) == [1, 1, 1, 1, 6]


async def test_a_single_task_waits_for_nobody(database: StrictDatabase):
    async with _app(database) as app:
        send = _send(app)
        for n in range(5):
            await send.enqueue(n=n)
    assert _jobs_by_transaction(database) == [1, 1, 1, 1, 1]


async def test_shared_jobs_have_the_options_of_their_producer(
    database: StrictDatabase, holder: Holder
):
    async with _app(database) as app:
        send = _send(app).options(priority=1, max_attempts=3, tags=["a"])
        work = [asyncio.create_task(send.enqueue(n=n)) for n in range(8)]
        await _begun(work, holder)
        await holder.let_go()
        for enqueued in await asyncio.gather(*work):
            job = await app.jobs.get(enqueued.job_id)
            assert job is not None
            assert (job.priority, job.max_attempts, job.options) == (1, 3, {"tags": ["a"]})


async def test_a_caller_that_gives_up_while_it_waits_for_its_turn_leaves_no_job(
    database: StrictDatabase, holder: Holder
):
    async with _app(database) as app:
        send = _send(app)
        work = [asyncio.create_task(send.enqueue(n=n)) for n in range(8)]
        await _begun(work, holder)
        work[5].cancel()
        await holder.let_go()
        answers = await asyncio.gather(*work, return_exceptions=True)
    assert [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)] == [5]
    assert _jobs_by_transaction(database) == [1, 1, 1, 1, 3]


async def test_a_caller_that_gives_up_during_its_call_lets_the_others_go_on(
    database: StrictDatabase, holder: Holder
):
    async with _app(database) as app:
        send = _send(app)
        work = [asyncio.create_task(send.enqueue(n=n)) for n in range(8)]
        await _begun(work, holder)
        work[0].cancel()
        await asyncio.wait(work[:1])
        await holder.until_held(_SEVERAL)
        await holder.let_go()
        answers = await asyncio.gather(*work, return_exceptions=True)
    assert [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)] == [0]
    assert _jobs_by_transaction(database) == [1, 1, 1, 4]


async def test_those_who_share_a_call_share_its_failure_and_nobody_else_does(
    database: StrictDatabase, holder: Holder
):
    async with _app(database) as app:
        send = _send(app)
        work = [asyncio.create_task(send.enqueue(n=n)) for n in range(10)]
        singles = await _begun(work, holder)
        await holder.kill(singles[0])
        [shared] = await holder.until_held(1, but=tuple(singles))
        await holder.kill(shared)
        await asyncio.wait(work[_SEVERAL:])
        await holder.let_go()
        answers = await asyncio.gather(*work, return_exceptions=True)
    failed = [answer for answer in answers if isinstance(answer, StoreUnavailable)]
    assert len(failed) == 7
    assert all(isinstance(answer, StoreUnavailable) for answer in answers[_SEVERAL:])
    assert _jobs_by_transaction(database) == [1, 1, 1]


async def test_what_is_refused_for_one_job_is_told_to_its_caller_alone(
    database: StrictDatabase, store: AsyncStore, holder: Holder
):
    gathering = Gathering(_send(App(database.dsn, **database.identity))._plan, store)
    texts = ['{"n":1}'] * 6 + ["no JSON"] + ['{"n":2}'] * 2
    work = [asyncio.create_task(gathering.enqueue(text)) for text in texts]
    await _begun(work, holder)
    await holder.let_go()
    answers = await asyncio.gather(*work, return_exceptions=True)
    assert [type(answer) for answer in answers if isinstance(answer, BaseException)] == [
        InvalidArgument
    ]
    assert isinstance(answers[6], InvalidArgument)
    assert _jobs_by_transaction(database) == [1] * 8


async def test_long_arguments_are_not_heaped_into_one_call(
    database: StrictDatabase, store: AsyncStore, holder: Holder
):
    gathering = Gathering(_send(App(database.dsn, **database.identity))._plan, store)
    text = '{"n":"' + "x" * 600_000 + '"}'
    work = [asyncio.create_task(gathering.enqueue(text)) for _ in range(8)]
    await _begun(work, holder)
    await holder.let_go()
    await asyncio.gather(*work)
    assert _jobs_by_transaction(database) == [1, 1, 1, 1, 2, 2]
