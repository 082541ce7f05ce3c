"""The way in which the other tests observe lock waits."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests import observe

pytestmark = pytest.mark.pg


@pytest.fixture
def holder(empty_database):
    """A session that holds an advisory lock."""
    with empty_database.connect() as connection:
        connection.execute("select pg_advisory_lock(1)")
        yield connection


@pytest.fixture
def waiter(empty_database):
    with empty_database.connect() as connection:
        yield connection


def test_a_lock_wait_is_observed_with_its_holder(empty_database, holder, waiter):
    """The wait ends as soon as the server shows who waits for whom."""
    with empty_database.connect() as observer, ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(waiter.execute, "select pg_advisory_lock(1)")
        try:
            pid, by = observe.backend_pid(waiter), observe.backend_pid(holder)
            observe.wait_until_blocked(observer, pid, by=by)
            assert not blocked.done()
        finally:
            holder.execute("select pg_advisory_unlock(1)")
        blocked.result()


def test_a_wait_that_never_comes_fails(empty_database, waiter, monkeypatch):
    """A test that expects a lock wait cannot pass without one."""
    monkeypatch.setattr(observe, "PATIENCE_SECONDS", 0.05)
    with (
        empty_database.connect() as observer,
        pytest.raises(AssertionError, match="did not wait for a lock"),
    ):
        observe.wait_until_blocked(observer, observe.backend_pid(waiter))


def test_another_holder_does_not_count(empty_database, holder, waiter, monkeypatch):
    """With `by`, only a wait for that session's lock ends the observation."""
    with empty_database.connect() as observer, ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(waiter.execute, "select pg_advisory_lock(1)")
        try:
            pid = observe.backend_pid(waiter)
            observe.wait_until_blocked(observer, pid)
            monkeypatch.setattr(observe, "PATIENCE_SECONDS", 0.05)
            with pytest.raises(AssertionError, match="did not wait for a lock held by"):
                observe.wait_until_blocked(observer, pid, by=observe.backend_pid(observer))
        finally:
            holder.execute("select pg_advisory_unlock(1)")
        blocked.result()


async def test_the_event_loop_goes_on_while_a_wait_is_observed(empty_database, holder, waiter):
    """The asynchronous observation lets other tasks run."""
    async with await psycopg.AsyncConnection.connect(
        empty_database.dsn, autocommit=True
    ) as observer:
        blocked = asyncio.create_task(
            asyncio.to_thread(waiter.execute, "select pg_advisory_lock(1)")
        )
        await observe.wait_until_blocked_async(observer, observe.backend_pid(waiter))
        holder.execute("select pg_advisory_unlock(1)")
        await blocked
