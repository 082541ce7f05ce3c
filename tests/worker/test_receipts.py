"""A receipt that does not come from this attempt's own finalization is a mistake, and said so at once."""

from typing import Any
from unittest.mock import MagicMock

import psycopg
import pytest

from onecommit.app.context import CallerOwnedJobContext, JobContext
from onecommit.domain.job import JobState
from onecommit.domain.token import FinalizationReceipt
from onecommit.telemetry.events import AttemptFailed, NoReceipt

pytestmark = pytest.mark.pg


def made_by_hand(_):
    return FinalizationReceipt()


def made_with_arguments(ctx):
    return FinalizationReceipt(ctx.token)


def made_without_init(_):
    return object.__new__(FinalizationReceipt)


def a_mock(_):
    return MagicMock(spec=FinalizationReceipt)


def a_subclass(_):
    return type("Mine", (FinalizationReceipt,), {})()


@pytest.mark.parametrize(
    ("fake", "code"),
    [
        (made_by_hand, "forged_receipt"),
        (made_with_arguments, "forged_receipt"),
        (a_subclass, "forged_receipt"),
        (made_without_init, "no_receipt"),
        (a_mock, "no_receipt"),
        (str, "no_receipt"),
    ],
)
async def test_a_faked_receipt_is_a_programming_error_at_once(app, worker_of, events, fake, code):
    """Dead letters at the first attempt: no retry repairs a program."""

    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> Any:
        return fake(ctx)

    job = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt, view.code) == (JobState.DEAD, 1, code)
    if code == "no_receipt":
        assert len(events.of(NoReceipt)) == 1
    else:
        assert [event.code for event in events.of(AttemptFailed)] == [code]


async def test_an_ordinary_job_that_returns_a_receipt_is_a_programming_error(
    app, worker_of, events, database
):
    """The receipt of another job, whose completion stands; its own end is the worker's to record."""
    kept = []

    @app.caller_owned_job()
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        async with (
            await psycopg.AsyncConnection.connect(database.dsn) as connection,
            connection.transaction(),
        ):
            kept.append(await ctx.complete_in_tx(connection))
        return kept[0]

    @app.job(queue="ordinary")
    async def ordinary(ctx: JobContext) -> Any:
        return kept[0]

    settled = await settle.enqueue()
    worker = await worker_of()
    await worker.drain()
    job = await ordinary.enqueue()
    await worker.drain()
    view = await app.jobs.get(job.job_id)
    assert (view.state, view.attempt, view.code) == (JobState.DEAD, 1, "unexpected_receipt")
    assert (await app.jobs.get(settled.job_id)).state is JobState.COMPLETED
    assert [event.code for event in events.of(AttemptFailed)] == ["unexpected_receipt"]
