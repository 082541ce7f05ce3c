"""What every driver promises: jobs and completions share the caller's transaction, wholly."""

from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from onecommit import Enqueued, FinalizationReceipt, StaleAttempt
from onecommit.app.job import Job
from onecommit.calls.operators import CANCEL_JOBS, on_jobs
from onecommit.domain.evidence import AttemptState
from onecommit.domain.job import Outcome
from onecommit.errors import InvalidArgument, SavepointRefused, TransactionTooOld

from tests.drivers.callers import Caller
from tests.drivers.conftest import Application

pytestmark = pytest.mark.pg


async def enqueue(caller: Caller, job: Job, **arguments: Any) -> Enqueued:
    """Enqueue as a user of this driver does."""
    enqueued = job.in_tx(caller.connection).enqueue(**arguments)
    return await enqueued if caller.is_async else enqueued


async def complete(caller: Caller, context: Any) -> FinalizationReceipt:
    """Complete as a handler that uses this driver does."""
    receipt = context.complete_in_tx(caller.connection)
    return await receipt if caller.is_async else receipt


async def write(caller: Caller) -> str:
    """Begin the caller's transaction and write one business row."""
    await caller.begin()
    entry = uuid4().hex
    await caller.execute(f"insert into ledger values ('{entry}')")
    return entry


async def test_a_job_exists_if_the_callers_transaction_commits(caller, application: Application):
    entry = await write(caller)
    enqueued = await enqueue(caller, application.notify, invoice_id=7)
    assert await application.app.jobs.get(enqueued.job_id) is None
    await caller.commit()
    job = await application.app.jobs.get(enqueued.job_id)
    assert job is not None
    assert (job.kind, job.args) == ("notify", {"invoice_id": 7})
    assert entry in application.entries()


async def test_a_job_vanishes_if_the_callers_transaction_rolls_back(caller, application):
    entry = await write(caller)
    enqueued = await enqueue(caller, application.notify, invoice_id=7)
    await caller.rollback()
    assert await application.app.jobs.get(enqueued.job_id) is None
    assert entry not in application.entries()


async def test_bulk_enqueue_joins_the_callers_transaction(caller, application):
    items = [{"invoice_id": number} for number in range(3)]
    await caller.begin()
    many = application.notify.in_tx(caller.connection).enqueue_many(items)
    enqueued = await many if caller.is_async else many
    await caller.commit()
    jobs = [await application.app.jobs.get(job.job_id) for job in enqueued]
    assert [job.args for job in jobs] == items


async def test_a_job_may_be_enqueued_inside_a_savepoint(caller, application):
    await write(caller)
    enqueued: list[Enqueued] = []

    async def inside() -> None:
        enqueued.append(await enqueue(caller, application.notify, invoice_id=7))

    await caller.savepoint(inside)
    await caller.commit()
    assert await application.app.jobs.get(enqueued[0].job_id)


async def test_a_refused_argument_leaves_the_callers_transaction_usable(caller, application):
    """Arguments are checked before anything is sent, so the business rows are not lost."""
    entry = await write(caller)
    with pytest.raises(InvalidArgument, match="`invoice_id`"):
        await enqueue(caller, application.notify, invoice_id="seven")
    await caller.commit()
    assert entry in application.entries()


async def test_rows_and_completion_commit_together(caller, application):
    context = await application.claim(sync=not caller.is_async)
    entry = await write(caller)
    receipt = await complete(caller, context)
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
    await complete(caller, context)
    await caller.rollback()
    assert await application.is_open(context)
    assert entry not in application.entries()


async def test_progress_travels_with_the_completion(caller, application):
    context = await application.claim(sync=not caller.is_async)
    context.set_progress({"settled": ["a \"quoted\" 'name' \\ é"]})
    await write(caller)
    await complete(caller, context)
    await caller.commit()
    job = await application.app.jobs.get(context.job_id)
    assert job.detail == {"progress": {"settled": ["a \"quoted\" 'name' \\ é"]}}


async def test_a_stale_attempt_takes_its_rows_down_even_if_the_error_is_caught(caller, application):
    """The adapter closes the connection, so a handler that swallows the error cannot commit."""
    context = await application.claim(sync=not caller.is_async)
    epoch = application.store.epoch
    entry = await write(caller)
    await application.store.run(
        on_jobs(CANCEL_JOBS, [context.job_id], actor="test", reason="test", epoch=epoch)
    )
    with pytest.raises(StaleAttempt) as caught:
        await complete(caller, context)
    assert context.finalization_error is caught.value
    await assert_cannot_commit(caller)
    assert entry not in application.entries()


async def test_a_savepoint_around_the_completion_is_refused(caller, application):
    """Its failure could be swallowed by rolling back to the savepoint alone."""
    context = await application.claim(sync=not caller.is_async)
    entry = await write(caller)

    async def finalize() -> None:
        with pytest.raises(SavepointRefused, match="begin_nested"):
            await complete(caller, context)

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
        await complete(caller, context)
    await assert_cannot_commit(caller)
    assert entry not in application.entries()


async def assert_cannot_commit(caller: Caller) -> None:
    """Whatever the driver says to commit, nothing of the transaction may become visible."""
    with pytest.raises(Exception):  # noqa: B017, PT011  each driver has its own error
        await caller.commit()
