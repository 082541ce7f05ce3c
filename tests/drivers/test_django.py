"""What is particular to Django: its threads, its blocks that are no savepoints, its async handlers."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.core.cache import cache
from django.db import transaction
from django.db.backends.sqlite3.base import DatabaseWrapper as Sqlite
from django.db.utils import DatabaseError

from onecommit import StaleAttempt
from onecommit.domain.evidence import AttemptState
from onecommit.errors import UsageError

from tests.drivers.conftest import Application, write
from tests.drivers.django_callers import DJANGO_CALLERS, DjangoCaller

pytestmark = pytest.mark.pg


@pytest.fixture
async def caller(application: Application):
    async with DJANGO_CALLERS["django"](application.caller_dsn) as opened:
        yield opened


async def test_an_inner_block_without_a_savepoint_may_complete(caller: DjangoCaller, application):
    context = await application.claim(sync=True)
    entry = await write(caller)
    with transaction.atomic(using=caller.connection.alias, savepoint=False):
        context.complete_in_tx(caller.connection)
    await caller.commit()
    assert entry in application.entries()
    assert (await application.status(context)).state is AttemptState.CLOSED


async def test_a_block_that_django_has_given_up_cannot_complete(caller, application):
    context = await application.claim(sync=True)
    await write(caller)
    transaction.set_rollback(True, using=caller.connection.alias)
    with pytest.raises(UsageError, match="already failed"):
        context.complete_in_tx(caller.connection)
    assert await application.is_open(context)


async def test_a_connection_of_another_thread_is_refused(caller, application):
    context = await application.claim(sync=True)
    await write(caller)
    with pytest.raises(DatabaseError, match="same thread"):
        await asyncio.to_thread(context.complete_in_tx, caller.connection)
    await caller.rollback()
    assert await application.is_open(context)


async def test_the_next_use_after_a_refusal_opens_another_connection(caller, application):
    context = await application.claim(sync=True)
    await application.cancel(context)
    with pytest.raises(Exception, match="OC001"), transaction.atomic(using=caller.connection.alias):
        context.complete_in_tx(caller.connection)
    await write(caller)
    await caller.commit()


async def test_a_block_in_which_the_error_was_swallowed_does_not_end_as_if_it_had_committed(
    caller, application
):
    """Django ends it in silence where it has closed the connection itself."""
    context = await application.claim(sync=True)
    await application.cancel(context)
    with (
        pytest.raises(DatabaseError, match="closed"),
        transaction.atomic(using=caller.connection.alias),
        suppress(StaleAttempt),
    ):
        context.complete_in_tx(caller.connection)


async def test_an_async_handler_completes_in_a_thread(application):
    """Its `ctx.sync` is the same attempt, and tells the async one what became of it."""
    context = await application.claim(sync=False)

    def record() -> str:
        async def in_thread() -> str:
            async with DJANGO_CALLERS["django"](application.caller_dsn) as caller:
                entry = await write(caller)
                await caller.complete(context.sync)
                await caller.commit()
                return entry

        return asyncio.run(in_thread())

    entry = await sync_to_async(record)()
    assert entry in application.entries()
    assert (await application.status(context)).state is AttemptState.CLOSED
    assert context.finalization_error is None


async def test_what_the_thread_was_refused_is_known_to_the_handler(caller, application):
    context = await application.claim(sync=False)
    with pytest.raises(UsageError) as caught:
        context.sync.complete_in_tx(caller.connection)
    assert context.finalization_error is caught.value


async def test_a_cache_or_another_engine_is_no_connection_to_postgresql(application):
    for thing in (cache, Sqlite({"NAME": ":memory:"})):
        with pytest.raises(UsageError, match="no connection to PostgreSQL"):
            application.notify.in_tx(thing)


def test_a_project_tests_its_jobs_where_its_tests_commit(shared_database):
    """In TransactionTestCase a worker settles the job; in TestCase nothing is ever committed."""
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("django_suite.py")],
        env=os.environ | shared_database.environment(),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert ended.returncode == 0, ended.stderr
