"""What is enqueued, what a handler does, and what becomes of the jobs."""

import asyncio
from unittest.mock import AsyncMock, Mock

import psycopg
import pytest
import shop

from onecommit import JobContext, JobState
from onecommit.testing import JobsFailed, enqueued, run_jobs


@pytest.fixture
def deliver(monkeypatch: pytest.MonkeyPatch) -> AsyncMock:
    """Takes the place of the call over the network."""
    mock = AsyncMock()
    monkeypatch.setattr(shop, "deliver", mock)
    return mock


def test_a_customer_who_signs_up_will_be_welcomed(connection: psycopg.Connection):
    shop.sign_up(connection, "ada")
    [welcome] = enqueued(shop.send_welcome, connection)
    assert welcome.args == {"name": "ada"}
    assert welcome.queue == "email"


def test_a_handler_alone(deliver: AsyncMock):
    ctx = Mock(spec=JobContext, attempt=3)
    said = asyncio.run(shop.send_welcome(ctx, name="ada"))
    assert said == "delivered in attempt 3"
    deliver.assert_awaited_once_with("ada@example.com", "Welcome!")


def test_the_jobs_of_a_customer_run(committed: psycopg.Connection, deliver: AsyncMock):
    customer_id = shop.sign_up(committed, "ada")
    asyncio.run(run_jobs(shop.app))
    deliver.assert_awaited_once_with("ada@example.com", "Welcome!")
    row = committed.execute("select greeted from customer where id = %s", (customer_id,))
    assert row.fetchone() == (True,)


def test_a_welcome_that_is_not_delivered_is_tried_again(
    committed: psycopg.Connection, deliver: AsyncMock
):
    deliver.side_effect = OSError("the mailbox is full")
    shop.send_welcome.sync.enqueue(name="ada")
    with pytest.raises(JobsFailed, match="the mailbox is full"):
        asyncio.run(run_jobs(shop.app))
    [again] = shop.app.sync.jobs.list(kind="send_welcome", state=JobState.SCHEDULED)
    assert again.attempt == 1
