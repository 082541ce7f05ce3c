"""What every driver promises: jobs and completions share the caller's transaction, wholly."""

from contextlib import suppress

import psycopg
import pytest

from onecommit import StaleAttempt
from onecommit.domain.evidence import AttemptState
from onecommit.domain.job import Outcome
from onecommit.errors import InvalidArgument, SavepointRefused, TransactionTooOld

from tests.drivers.callers import Caller, PythonCaller
from tests.drivers.conftest import Application, assert_cannot_commit, write

pytestmark = pytest.mark.pg

SEVEN = {"invoice_id": 7}


async def test_a_job_exists_if_the_callers_transaction_commits(
    caller: Caller, application: Application
):
    entry = await write(caller)
    (job_id,) = await caller.enqueue(application.notify, SEVEN)
    assert await application.app.jobs.get(job_id) is None
    await caller.commit()
    job = await application.app.jobs.get(job_id)
    assert job is not None
    assert (job.kind, job.args) == ("notify", SEVEN)
    assert entry in application.entries()


async def test_a_job_vanishes_if_the_callers_transaction_rolls_back(caller, application):
    entry = await write(caller)
    (job_id,) = await caller.enqueue(application.notify, SEVEN)
    await caller.rollback()
    assert await application.app.jobs.get(job_id) is None
    assert entry not in application.entries()


async def test_bulk_enqueue_joins_the_callers_transaction(caller, application):
    items = [{"invoice_id": number} for number in range(3)]
    await caller.begin()
    job_ids = await caller.enqueue(application.notify, *items)
    await caller.commit()
    jobs = [await application.app.jobs.get(job_id) for job_id in job_ids]
    assert [job.args for job in jobs] == items


async def test_a_job_may_be_enqueued_inside_a_savepoint(caller, application):
    await write(caller)
    job_ids: list[int] = []

    async def inside() -> None:
        job_ids.extend(await caller.enqueue(application.notify, SEVEN))

    await caller.savepoint(inside)
    await caller.commit()
    assert await application.app.jobs.get(job_ids[0])


async def test_a_refused_argument_leaves_the_callers_transaction_usable(
    python_caller: PythonCaller, application
):
    """Arguments are checked before anything is sent, so the business rows are not lost."""
    entry = await write(python_caller)
    with pytest.raises(InvalidArgument, match="`invoice_id`"):
        await python_caller.enqueue(application.notify, {"invoice_id": "seven"})
    await python_caller.commit()
    assert entry in application.entries()


async def test_rows_and_completion_commit_together(caller, application):
    context = await application.claim(sync=not caller.is_async)
    entry = await write(caller)
    receipt = await caller.complete(context)
    assert receipt.belongs_to(context.token)
    assert receipt.outcome is Outcome.COMPLETED
    assert receipt.finished_at.tzinfo is not None
    assert (await application.status(context)).state is AttemptState.IN_FLIGHT
    await caller.commit()
    status = await application.status(context)
    assert (status.state, status.outcome) == (AttemptState.CLOSED, Outcome.COMPLETED)
    assert entry in application.entries()


async def test_rows_and_completion_roll_back_together(caller, application):
    context = await application.claim(sync=not caller.is_async)
    entry = await write(caller)
    await caller.complete(context)
    await caller.rollback()
    assert await application.is_open(context)
    assert entry not in application.entries()


async def test_progress_travels_with_the_completion(caller, application):
    context = await application.claim(sync=not caller.is_async)
    context.set_progress({"settled": ["a \"quoted\" 'name' \\ é"]})
    await write(caller)
    await caller.complete(context)
    await caller.commit()
    job = await application.app.jobs.get(context.job_id)
    assert job.detail == {"progress": {"settled": ["a \"quoted\" 'name' \\ é"]}}


@pytest.mark.parametrize("name", ["Cursor", "ClientCursor", "RawCursor"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_whatever_cursors_a_psycopg_connection_makes(application, name: str, is_async: bool):
    """The placeholders of a raw cursor are not those of the others."""
    context = await application.claim(sync=not is_async)
    if is_async:
        factory = getattr(psycopg, f"Async{name}")
        async with await psycopg.AsyncConnection.connect(application.database.dsn) as connection:
            connection.cursor_factory = factory
            await context.complete_in_tx(connection)
    else:
        with psycopg.connect(application.database.dsn) as connection:
            connection.cursor_factory = getattr(psycopg, name)
            context.complete_in_tx(connection)
    assert (await application.status(context)).state is AttemptState.CLOSED


async def test_a_stale_attempt_takes_its_rows_down_even_if_the_error_is_caught(caller, application):
    """The server aborts the transaction, and an adapter closes the connection too."""
    context = await application.claim(sync=not caller.is_async)
    entry = await write(caller)
    await application.cancel(context)
    with pytest.raises(StaleAttempt):
        await caller.complete(context)
    await assert_cannot_commit(caller)
    assert entry not in application.entries()


async def test_a_savepoint_around_the_completion_is_refused(caller, application):
    """Its failure could be swallowed by rolling back to the savepoint alone."""
    context = await application.claim(sync=not caller.is_async)
    entry = await write(caller)

    async def finalize() -> None:
        with pytest.raises(SavepointRefused, match="begin_nested"):
            await caller.complete(context)

    # Leaving the savepoint fails in most drivers, because the connection is closed; that is the point.
    with suppress(Exception):
        await caller.savepoint(finalize)
    await assert_cannot_commit(caller)
    assert await application.is_open(context)
    assert entry not in application.entries()


async def test_a_transaction_held_since_before_the_claim_is_refused(caller, application):
    """It would pin the database's horizon for as long as handlers run."""
    entry = await write(caller)
    context = await application.claim(sync=not caller.is_async)
    with pytest.raises(TransactionTooOld):
        await caller.complete(context)
    await assert_cannot_commit(caller)
    assert entry not in application.entries()
