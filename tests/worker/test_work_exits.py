"""Whatever the application's code of Work raises or does to its task, its attempt is recorded at once, and as what it is."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from onecommit import Safety, WorkInvocation
from onecommit.app.app import App
from onecommit.app.work_invocation import SyncWorkInvocation
from onecommit.domain.work_policy import WorkRetry
from onecommit.telemetry.events import WorkAttemptEnded, WorkAttemptFailed, WorkSuspended

from tests.clusters import Database
from tests.waiting_work import accept, define
from tests.worker.conftest import StartWorker
from tests.worker.harness import Events, Interfering

pytestmark = pytest.mark.pg

LONG = WorkRetry(lease=timedelta(minutes=10), max_lease=timedelta(minutes=10))
"""Longer than a test: what waits for the end of a lease fails it."""
TERMS = {"retry": LONG, "safety": Safety.MANUAL_RESOLUTION}
EXITS = {
    type(error).__name__: error
    for error in (
        LookupError(),
        asyncio.CancelledError(),
        GeneratorExit(),
        SystemExit(3),
        KeyboardInterrupt(),
        BaseException("bare"),
        ExceptionGroup("several", [LookupError()]),
    )
}


class Reader:
    """What a payload does as it is read."""

    act: Callable[[], None] | None = None


@dataclass
class Payload:
    """Of a type with code of its own."""

    name: str

    def __post_init__(self) -> None:
        if Reader.act is not None:
            Reader.act()


@pytest.fixture
def reading():
    """Sets what is done while a payload is read."""

    def set_act(act: Callable[[], None]) -> None:
        Reader.act = act

    yield set_act
    Reader.act = None


def permits(database: Database, work_id: int) -> list[tuple[str, bool]]:
    with database.connect() as connection:
        return connection.execute(
            "select outcome, invocation_admitted_at is not null from onecommit.effect_permit"
            " where work_id = %s order by permit_id",
            (work_id,),
        ).fetchall()


def row(database: Database, work_id: int) -> tuple[str, str | None, int]:
    """State, code and attempt."""
    with database.connect() as connection:
        return connection.execute(
            "select state, code, attempt from onecommit.work where work_id = %s", (work_id,)
        ).fetchone()


def lose_the_admission(database: Database, work_id: int) -> None:
    """As a failover does to what was not replicated."""
    with database.connect() as connection:
        connection.execute("set session_replication_role = replica")  # no trigger minds
        connection.execute(
            "update onecommit.effect_permit set invocation_admitted_at = null where work_id = %s",
            (work_id,),
        )


# --- before the permit


@pytest.mark.parametrize("name", EXITS)
async def test_what_the_code_that_reads_a_payload_raises_leaves_its_work_to_an_operator(
    app: App, database: Database, worker_of: StartWorker, events: Events, reading, name: str
):
    """As a payload that does not fit: nothing is permitted, nothing tried again, and the worker lives on."""

    def fail() -> None:
        raise EXITS[name]

    charge = define(app, payload=Payload, **TERMS)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: Payload) -> str:
        return "paid"

    broken = await accept(charge, Payload("broken"))
    reading(fail)
    await worker_of()
    await events.wait_for(WorkSuspended)
    assert row(database, broken.work_id) == ("suspended_contract_unavailable", "ASDUR109", 1)
    assert permits(database, broken.work_id) == []
    assert [failed.failure for failed in events.of(WorkAttemptFailed)] == [name]
    reading(lambda: None)
    good = await accept(charge, Payload("good"))
    await events.wait_for(WorkAttemptEnded, count=2)
    assert row(database, good.work_id) == ("succeeded", None, 1)


@pytest.mark.parametrize("routine", [None, "acquire_permit", "admit_invocation"])
async def test_a_reader_that_cancels_its_task_cancels_no_attempt(
    app: App, database: Database, worker_of: StartWorker, events: Events, reading, routine
):
    """At once, or later: when the permit stands, or the admission."""
    reader = producer = asyncio.current_task()

    def take_task() -> None:
        nonlocal reader
        reader = asyncio.current_task()
        if routine is None and reader is not producer:
            reader.cancel()

    def cancel() -> None:
        reader.cancel()

    charge = define(app, payload=Payload, **TERMS)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: Payload) -> str:
        return "paid"

    payload = Payload("cancels")
    reading(take_task)
    worker = await worker_of()
    if routine is not None:
        Interfering(worker._machinery.work._runner, routine, cancel)
    accepted = await accept(charge, payload)
    await events.wait_for(WorkAttemptEnded)
    assert row(database, accepted.work_id) == ("succeeded", None, 1)
    assert permits(database, accepted.work_id) == [("known_succeeded", True)]


# --- after the permit


@pytest.mark.parametrize("flavour", ["at once", "after a wait", "in a thread"])
@pytest.mark.parametrize("known", [True, False], ids=["admission", "permit"])
async def test_what_an_executor_raises_is_an_unknown_outcome(
    app: App, database: Database, worker_of: StartWorker, events: Events, flavour: str, known: bool
):
    """Under its admission, and under a permit whose admission the store has lost: recorded at once, under its class's name."""
    names = list(EXITS)

    def fail(work_id: int, payload: dict) -> None:
        if not known:
            lose_the_admission(database, work_id)
        raise EXITS[names[payload["cents"]]]

    charge = define(app, **TERMS)
    if flavour == "in a thread":

        @charge.executor
        def run_in_a_thread(invocation: SyncWorkInvocation, payload: dict) -> str:
            fail(invocation.work_id, payload)

    else:

        @charge.executor
        async def run(invocation: WorkInvocation, payload: dict) -> str:
            if flavour == "after a wait":
                await asyncio.sleep(0)
            fail(invocation.work_id, payload)

    accepted = [await accept(charge, {"cents": number}) for number in range(len(names))]
    await worker_of()
    await events.wait_for(WorkSuspended, count=len(names))
    with database.connect() as connection:
        for name, item in zip(names, accepted, strict=True):
            assert row(database, item.work_id) == ("suspended_manual_resolution", "ASDUR106", 1)
            assert permits(database, item.work_id) == [("ambiguous", known)], name
            said = connection.execute(
                "select event, application_code from onecommit.work_history"
                " where work_id = %s order by history_id desc limit 1",
                (item.work_id,),
            ).fetchone()
            assert said == ("exception", name)


@pytest.mark.parametrize("when", ["at once", "as it ends", "as its end is recorded"])
@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
async def test_a_cancellation_that_an_executor_leaves_behind_keeps_nothing_from_being_recorded(
    app: App, database: Database, worker_of: StartWorker, events: Events, when: str, raises: bool
):
    """A charge that was made is never lost by it."""
    charge = define(app, **TERMS)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if when == "at once":
            task.cancel()
        elif when == "as it ends":
            loop.call_soon(task.cancel)
        else:
            loop.call_soon(loop.call_soon, loop.call_soon, task.cancel)
        if raises:
            raise LookupError
        return "paid"

    accepted = await accept(charge)
    await worker_of()
    ended = await events.wait_for(WorkSuspended if raises else WorkAttemptEnded)
    assert (ended.event, ended.outcome) == ("exception" if raises else "succeeded", "completed")
    expected = ("suspended_manual_resolution", "ASDUR106") if raises else ("succeeded", None)
    assert row(database, accepted.work_id) == (*expected, 1)
