"""A worker runs Work: under a permit, once admitted, with its end recorded, and without a connection meanwhile."""

import asyncio
import hashlib
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from onecommit import WorkInvocation
from onecommit.app.app import App
from onecommit.app.work_invocation import SyncWorkInvocation
from onecommit.domain.work import Safety
from onecommit.domain.work_exit import (
    AmbiguousExternalOutcome,
    FailedTerminal,
    RetryBeforeEffect,
    Succeeded,
)
from onecommit.domain.work_policy import WorkRetry
from onecommit.errors import EpochFenced, StoreUnavailable, UsageError
from onecommit.telemetry.events import (
    WorkAttemptEnded,
    WorkAttemptFailed,
    WorkAttemptRefused,
    WorkCompletionFenced,
    WorkMoved,
)
from onecommit.worker.work.invocations import Stop

from tests.clusters import Database
from tests.worker.conftest import StartWorker
from tests.worker.harness import PATIENCE, Events, Interfering, eventually

pytestmark = pytest.mark.pg

SECOND = timedelta(seconds=1)
QUICK = WorkRetry(
    initial_delay=timedelta(milliseconds=1),
    max_delay=timedelta(milliseconds=1),
    lease=2 * SECOND,
    renewal=timedelta(milliseconds=300),
    max_lease=4 * SECOND,
)
counter = iter(range(10**6))


@pytest.fixture(autouse=True)
def empty(database: Database):
    """No Work is left of the test before."""
    with database.connect() as connection:
        connection.execute(
            "truncate onecommit.work, onecommit.dispatch, onecommit.work_payload, onecommit.work_result,"
            " onecommit.effect_permit, onecommit.work_history, onecommit.operator_command, onecommit.scope,"
            " onecommit.scope_history"
        )


def define(app: App, **options: Any):
    """Work of a name of its own."""
    named = {"version": "1", "payload": dict, "result": str, "safety": Safety.PROVIDER_KEYED}
    return app.work(f"charge{next(counter)}", **named | {"retry": QUICK} | options)


async def accept(work, payload: Any = None, *, scope: str = "tenant-1", **options: Any):
    number = next(counter)
    return await work.accept(
        {"cents": 1} if payload is None else payload,
        scope=scope,
        command_id=f"c{number}",
        idempotency_key=f"k{number}",
        **options,
    )


def row(database: Database, work_id: int) -> dict[str, Any]:
    with database.connect() as connection:
        return connection.execute(
            "select to_jsonb(w) from onecommit.work w where work_id = %s", (work_id,)
        ).fetchone()[0]


def permits(database: Database) -> list[tuple[str, bool]]:
    with database.connect() as connection:
        return connection.execute(
            "select outcome, invocation_admitted_at is not null from onecommit.effect_permit order by permit_id"
        ).fetchall()


async def test_accepted_work_is_done_under_its_permit(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """The executor gets the payload and the provider's key; its result is stored."""
    seen: list[tuple[UUID, int, dict]] = []
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        seen.append((invocation.activity_id, invocation.attempt, payload))
        return "paid"

    await worker_of()
    accepted = await accept(charge, {"cents": 5})
    ended = await events.wait_for(WorkAttemptEnded)
    assert (ended.event, ended.outcome, ended.state) == ("succeeded", "completed", "succeeded")
    assert seen == [(accepted.activity_id, 1, {"cents": 5})]
    assert permits(database) == [("known_succeeded", True)]
    with database.connect() as connection:
        assert connection.execute("select result from onecommit.work_result").fetchone() == (
            b'"paid"',
        )


async def test_a_plain_function_runs_in_a_thread(app: App, worker_of: StartWorker, events: Events):
    threads: list[bool] = []
    charge = define(app)

    @charge.executor
    def run(invocation: SyncWorkInvocation, payload: dict) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return "paid"

    await worker_of()
    await accept(charge)
    assert (await events.wait_for(WorkAttemptEnded)).state == "succeeded"
    assert threads == [False]


@pytest.mark.parametrize(
    ("exit_", "event", "state"),
    [
        (Succeeded("paid"), "succeeded", "succeeded"),
        (RetryBeforeEffect("app.busy"), "retry_before_effect", "retry_wait"),
        (FailedTerminal("app.no"), "failed_terminal", "suspended_ambiguous_external_outcome"),
        (AmbiguousExternalOutcome("app.lost"), "ambiguous", "suspended_ambiguous_external_outcome"),
        ("paid", "compatibility", "suspended_ambiguous_external_outcome"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
async def test_typed_exits(
    app: App, worker_of: StartWorker, events: Events, exit_: Any, event: str, state: str
):
    """Each is a fact; what is no exit follows the path of an unknown outcome."""
    charge = define(app, exits=True)

    @charge.exit_executor
    async def run(invocation: WorkInvocation, payload: dict) -> Any:
        return exit_

    await worker_of()
    await accept(charge)
    ended = await events.wait_for(WorkAttemptEnded)
    assert (ended.event, ended.state) == (event, state)


@pytest.mark.parametrize("returned", [Succeeded("paid"), 5], ids=["exit", "another type"])
async def test_what_an_executor_may_not_return_is_an_unknown_outcome(
    app: App, worker_of: StartWorker, events: Events, returned: Any
):
    """The provider was called, so it is not a failure."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> Any:
        return returned

    await worker_of()
    await accept(charge)
    ended = await events.wait_for(WorkAttemptEnded)
    assert (ended.event, ended.code) == ("compatibility", "ASDUR106")


@pytest.mark.parametrize("error", [ConnectionError, SystemExit, KeyboardInterrupt])
async def test_an_exception_is_tried_again_with_the_same_key(
    app: App,
    database: Database,
    worker_of: StartWorker,
    events: Events,
    error: type[BaseException],
):
    """In a safe class; its text is nowhere."""
    keys: list[UUID] = []
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        keys.append(invocation.activity_id)
        if len(keys) < 3:
            raise error("card 4242")
        return "paid"

    await worker_of()
    accepted = await accept(charge)
    ended = await events.wait_for(WorkAttemptEnded, count=3)
    assert ended.state == "succeeded"
    assert keys == [accepted.activity_id] * 3
    assert permits(database) == [
        ("ambiguous", True),
        ("ambiguous", True),
        ("known_succeeded", True),
    ]
    assert "4242" not in repr(events.seen)
    assert events.of(WorkAttemptFailed)[0].failure == error.__name__
    with database.connect() as connection:
        codes = connection.execute(
            "select distinct application_code from onecommit.work_history where event = 'exception'"
        ).fetchall()
    assert codes == [(error.__name__,)]


@pytest.mark.parametrize(
    ("safety", "state"),
    [
        (Safety.RECONCILE_BEFORE_RETRY, "suspended_reconciliation_required"),
        (Safety.MANUAL_RESOLUTION, "suspended_manual_resolution"),
    ],
)
async def test_an_exception_suspends_an_unsafe_class(
    app: App, worker_of: StartWorker, events: Events, safety: Safety, state: str
):
    charge = define(app, safety=safety)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        raise ConnectionError

    @charge.reconciler
    async def ask(inquiry: Any, payload: dict) -> Any: ...

    await worker_of()
    await accept(charge)
    ended = await events.wait_for(WorkAttemptEnded)
    assert (ended.state, ended.code) == (state, "ASDUR106")


async def test_no_connection_is_held_while_the_provider_is_called(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """Twenty calls at once leave the worker's sessions idle, none of them in a transaction."""
    charge = define(app)
    inside = asyncio.Semaphore(0)
    go_on = asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.release()
        await go_on.wait()
        return "paid"

    await worker_of(work={charge.contract.name: 20})
    for number in range(20):
        await accept(charge, scope=f"tenant-{number % 3}")
    async with asyncio.timeout(PATIENCE):
        for _ in range(20):
            await inside.acquire()
    with database.connect() as connection:
        sessions, busy = connection.execute(
            "select count(*), count(*) filter (where state like 'idle in%') from pg_stat_activity"
            " where datname = current_database() and application_name like '%worker%'"
        ).fetchone()
    assert busy == 0
    assert sessions < 20
    go_on.set()
    await events.wait_for(WorkAttemptEnded, count=20)


async def test_only_so_many_run_at_a_time(app: App, worker_of: StartWorker, events: Events):
    """By the contract's name; another one is not held up."""
    slow, quick = define(app), define(app)
    inside = 0
    most = 0
    go_on = asyncio.Event()

    @slow.executor
    async def run_slow(invocation: WorkInvocation, payload: dict) -> str:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await go_on.wait()
        inside -= 1
        return "done"

    @quick.executor
    async def run_quick(invocation: WorkInvocation, payload: dict) -> str:
        return "done"

    for _ in range(6):
        await accept(slow)
    await accept(quick)
    await worker_of(work={slow.contract.name: 2, quick.contract.name: 2})
    assert (await events.wait_for(WorkAttemptEnded)).contract == quick.label
    await eventually(lambda: inside == 2, what="both slots are taken")
    go_on.set()
    await events.wait_for(WorkAttemptEnded, count=7)
    assert most == 2


async def test_a_worker_does_not_touch_a_contract_it_does_not_know(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """Nor one without an executor, nor one that it was not asked to run."""
    mine, unasked, bare = define(app), define(app), define(app)
    for work in (mine, unasked):

        @work.executor
        async def run(invocation: WorkInvocation, payload: dict) -> str:
            return "done"

    foreign = [await accept(unasked), await accept(bare)]
    await accept(mine)
    await worker_of(work={mine.contract.name: 1})
    await events.wait_for(WorkAttemptEnded)
    for accepted in foreign:
        assert row(database, accepted.work_id)["revision"] == 1


async def test_a_name_that_nobody_can_run_is_refused_at_the_start(app: App, worker_of: StartWorker):
    """With what to do."""
    with pytest.raises(UsageError, match="nobody"):
        await worker_of(work={"nobody": 1}, queues={"default": 1})


async def test_a_payload_that_does_not_fit_waits_for_an_operator(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """Before any permit; the worker lives on."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    broken, good = await accept(charge), await accept(charge)
    with database.connect() as connection:
        connection.execute(
            "update onecommit.work_payload set payload = '[' where work_id = %s", (broken.work_id,)
        )
        connection.execute("alter table onecommit.work disable trigger user")
        connection.execute(
            "update onecommit.work set payload_sha256 = sha256('[') where work_id = %s",
            (broken.work_id,),
        )
        connection.execute("alter table onecommit.work enable trigger user")
    await worker_of()
    await events.wait_for(WorkAttemptEnded, count=2)
    assert row(database, broken.work_id)["state"] == "suspended_contract_unavailable"
    assert row(database, good.work_id)["state"] == "succeeded"
    assert len(permits(database)) == 1


async def test_a_lease_is_renewed_while_the_provider_takes_its_time(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """Longer than the lease."""
    charge = define(app)
    renewed = asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        await renewed.wait()
        return "paid"

    accepted = await accept(charge)
    await worker_of()

    def is_extended() -> bool:
        found = row(database, accepted.work_id)
        with database.connect() as connection:
            return connection.execute(
                "select %s::timestamptz - %s::timestamptz > interval '2.5 seconds'",
                (found["lease_expires_at"], found["lease_started_at"]),
            ).fetchone()[0]

    await eventually(is_extended, what="the lease lasts beyond its first end")
    renewed.set()
    assert (await events.wait_for(WorkAttemptEnded)).state == "succeeded"


async def test_at_the_longest_lease_the_executor_is_stopped_in_time(
    app: App, worker_of: StartWorker, events: Events
):
    """So that its attempt is recorded by the worker that made it."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        await asyncio.Event().wait()
        return "never"

    await accept(charge)
    await worker_of()
    ended = await events.wait_for(WorkAttemptEnded)
    assert (ended.event, ended.outcome, ended.state) == ("exception", "completed", "retry_wait")
    assert events.of(WorkMoved) == []


async def test_a_cancellation_reaches_the_executor(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """At the next renewal, as a flag; what it returns then counts."""
    charge = define(app)
    inside = asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.set()
        while not invocation.is_cancelled:
            await asyncio.sleep(0.01)
        return "undone"

    accepted = await accept(charge)
    await worker_of()
    await inside.wait()
    with database.connect() as connection:
        connection.execute(
            "select onecommit.cancel_work('tenant-1', 'stop', %s, 'ada', 'typo', last_value)"
            " from onecommit.epoch_fence",
            (accepted.work_id,),
        )
    ended = await events.wait_for(WorkAttemptEnded)
    assert ended.state == "succeeded_after_cancel_requested"


async def test_an_executor_that_lost_its_lease_is_stopped(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """Its scope was disabled; what it says is kept aside."""
    charge = define(app)
    inside = asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "paid"
        return "never"

    await accept(charge)
    await worker_of()
    await inside.wait()
    with database.connect() as connection:
        connection.execute(
            "select onecommit.disable_scope('tenant-1', 'off', 1, 'ada', 'gone', last_value)"
            " from onecommit.epoch_fence"
        )
    ended = await events.wait_for(WorkAttemptEnded)
    assert (ended.outcome, ended.code) == ("quarantined", "ASDUR107")


async def test_draining_lets_admitted_work_end(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """And claims no more."""
    charge = define(app)
    inside, go_on = asyncio.Event(), asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.set()
        await go_on.wait()
        return "paid"

    worker = await worker_of()
    first = await accept(charge)
    await inside.wait()
    stopping = asyncio.create_task(worker.stop())
    await eventually(
        lambda: not worker._machinery.work._looks.running,
        what="the worker claims no more",
    )
    later = await accept(charge)
    go_on.set()
    assert await stopping == 0
    assert row(database, first.work_id)["state"] == "succeeded"
    assert row(database, later.work_id)["state"] == "pending"


async def test_work_that_does_not_end_is_cancelled_after_the_budget(
    app: App, worker_of: StartWorker, events: Events
):
    """And its end recorded: nobody has to wait for its lease."""
    charge = define(app)
    inside = asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.set()
        await asyncio.Event().wait()
        return "never"

    worker = await worker_of(drain_budget=0.2)
    await accept(charge)
    await inside.wait()
    assert await worker.stop() == 0
    assert events.of(WorkAttemptEnded)[0].event == "exception"


async def test_drain_waits_for_work_too(app: App, worker_of: StartWorker, events: Events):
    """As it does for jobs: what is due now."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    for number in range(50):
        await accept(charge, scope=f"tenant-{number % 7}")
    worker = await worker_of()
    await worker.drain()
    assert len(events.of(WorkAttemptEnded)) == 50


async def test_two_workers_share_without_doing_anything_twice(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """Every item is invoked once."""
    charge = define(app)
    seen: list[int] = []

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        seen.append(invocation.work_id)
        return "paid"

    for number in range(100):
        await accept(charge, scope=f"tenant-{number % 3}")
    await worker_of()
    await worker_of()
    await events.wait_for(WorkAttemptEnded, count=100)
    assert sorted(seen) == sorted(set(seen))
    assert len(seen) == 100
    assert events.of(WorkAttemptRefused) == []


async def test_a_notice_wakes_a_sleeping_worker(app: App, worker_of: StartWorker, events: Events):
    """Long before its poll."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    worker = await worker_of(silent_poll_interval=60.0)
    dispatcher = worker._machinery.work._dispatcher
    await eventually(lambda: dispatcher._marked_until > 0, what="the worker sleeps")
    await accept(charge)
    assert (await events.wait_for(WorkAttemptEnded)).state == "succeeded"


async def test_work_is_found_without_a_notice(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """A notice is a hint: if none comes, the poll looks."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    worker = await worker_of(silent_poll_interval=0.2)
    dispatcher = worker._machinery.work._dispatcher
    await eventually(lambda: dispatcher._marked_until > 0, what="the worker sleeps")
    with database.connect() as owner:
        as_it_was = owner.execute(
            "select pg_get_functiondef('onecommit.announce_work'::regproc)"
        ).fetchone()[0]
        owner.execute(
            "create or replace function onecommit.announce_work(p_due_at timestamptz, p_now timestamptz)"
            " returns boolean language sql as $$ select true $$"
        )
        try:
            await accept(charge)
            assert (await events.wait_for(WorkAttemptEnded)).state == "succeeded"
        finally:
            owner.execute(as_it_was)


async def test_the_worker_says_which_contracts_it_runs(
    app: App, database: Database, worker_of: StartWorker
):
    """And that it understands exits."""
    charge = define(app, exits=True)

    @charge.exit_executor
    async def run(invocation: WorkInvocation, payload: dict) -> Any:
        return Succeeded("paid")

    await worker_of()
    with database.connect() as connection:
        [info] = connection.execute(
            "select info from onecommit.worker where ended_at is null"
        ).fetchone()
    assert info["work"] == [charge.label]
    assert "work_exit_v1" in info["capabilities"]


async def test_a_failed_renewal_is_not_the_end(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """A row that somebody holds is asked for again."""
    charge = define(app, retry=replace(QUICK, lease=8 * SECOND, max_lease=16 * SECOND))
    inside, go_on = asyncio.Event(), asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.set()
        await go_on.wait()
        return "paid"

    accepted = await accept(charge)
    renewals = (await started_idle(worker_of)).renewals
    await inside.wait()
    [lease] = renewals._leases.values()
    started = row(database, accepted.work_id)["lease_expires_at"]
    with psycopg.connect(database.observer_dsn) as holder:
        holder.execute(
            "select from onecommit.work where work_id = %s for update", (accepted.work_id,)
        )
        for what in ("a renewal finds the row locked", "another one does"):
            due = lease.due
            await eventually(lambda due=due: lease.due > due, what=what)
    await eventually(
        lambda: row(database, accepted.work_id)["lease_expires_at"] > started,
        what="the lease is renewed after the row is free",
    )
    go_on.set()
    assert (await events.wait_for(WorkAttemptEnded)).state == "succeeded"


async def test_a_short_lease_is_asked_for_again_before_it_has_ended(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """A row that is locked for a moment costs a lease of seconds a tenth of what is left of it."""
    charge = define(app, retry=replace(QUICK, lease=4 * SECOND, max_lease=60 * SECOND))
    inside, go_on = asyncio.Event(), asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.set()
        await go_on.wait()
        return "paid"

    accepted = await accept(charge)
    renewals = (await started_idle(worker_of)).renewals
    await inside.wait()
    [lease] = renewals._leases.values()
    with psycopg.connect(database.observer_dsn) as holder:
        holder.execute(
            "select from onecommit.work where work_id = %s for update", (accepted.work_id,)
        )
        lease.due = 0.0
        renewals.poke()
        await eventually(lambda: lease.due > 0.0, what="the renewal finds the row locked")
        assert lease.due - time.monotonic() <= 0.4
    go_on.set()
    assert (await events.wait_for(WorkAttemptEnded)).state == "succeeded"


def lose_the_reply() -> None:
    raise StoreUnavailable("the connection was lost")


async def started_idle(worker_of: StartWorker) -> Any:
    """A worker and its runner before any Work."""
    worker = await worker_of()
    return worker._machinery.work._runner


@pytest.mark.parametrize(
    ("routine", "attempts"),
    [("acquire_permit", 1), ("admit_invocation", 2), ("complete_work", 1)],
)
async def test_a_lost_reply_does_not_call_the_provider_twice(
    app: App, worker_of: StartWorker, events: Events, routine: str, attempts: int
):
    """Permit and record are asked again; after an admission nobody knows of, the provider is not called."""
    called: list[int] = []
    charge = define(app, safety=Safety.MANUAL_RESOLUTION)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        called.append(invocation.attempt)
        return "paid"

    Interfering(await started_idle(worker_of), routine, lose_the_reply)
    await accept(charge)
    ended = await events.wait_for(WorkAttemptEnded, count=attempts)
    assert ended.state == "succeeded"
    assert called == [attempts]
    if routine == "complete_work":
        assert ended.outcome == "replayed"


@pytest.mark.parametrize("routine", ["acquire_permit", "admit_invocation"])
async def test_an_attempt_that_is_stopped_before_its_executor_began_had_no_effect(
    app: App, database: Database, worker_of: StartWorker, events: Events, routine: str
):
    """So no class has to wait for an operator."""
    charge = define(app, safety=Safety.MANUAL_RESOLUTION)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    runner = await started_idle(worker_of)
    Interfering(runner, routine, lambda: runner.interrupt_all(Stop.SHUTDOWN))
    await accept(charge)
    ended = await events.wait_for(WorkAttemptEnded)
    assert (ended.event, ended.state) == ("retry_before_effect", "retry_wait")
    assert (await events.wait_for(WorkAttemptEnded, count=2)).state == "succeeded"
    assert permits(database) == [("proven_no_effect", True), ("known_succeeded", True)]


async def test_work_that_somebody_holds_is_not_asked_for_without_a_pause(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """And done as soon as it is free; other scopes are not held up."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    worker = await worker_of()
    dispatcher = worker._machinery.work._dispatcher
    held = await accept(charge, due_at=datetime.now(UTC) + SECOND)
    looks = 0
    look = dispatcher.run_once

    async def counted() -> float | None:
        nonlocal looks
        looks += 1
        return await look()

    with psycopg.connect(database.observer_dsn) as holder:
        holder.execute("select from onecommit.work where work_id = %s for update", (held.work_id,))
        await eventually(lambda: dispatcher._fruitless, what="a claim found it locked")
        dispatcher.run_once = counted
        await eventually(
            lambda: dispatcher._fruitless["tenant-1"] >= 6, what="it was tried six times"
        )
        assert looks < 100
        await accept(charge, scope="tenant-2")
        await events.wait_for(WorkAttemptEnded)
    assert (await events.wait_for(WorkAttemptEnded, count=2)).work == held.work_id


async def test_a_rotated_epoch_ends_the_worker_and_names_what_it_could_not_record(
    app: App, database: Database, worker_of: StartWorker, events: Events
):
    """By work, attempt and digest."""
    charge = define(app)
    inside, go_on = asyncio.Event(), asyncio.Event()

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        inside.set()
        await go_on.wait()
        return "paid"

    worker = await worker_of(heartbeat_interval=10.0)
    accepted = await accept(charge)
    await inside.wait()
    with database.connect() as connection:
        before = connection.execute("select last_value from onecommit.epoch_fence").fetchone()[0]
        connection.execute("select setval('onecommit.epoch_fence', %s, true)", (before + 1,))
        try:
            go_on.set()
            fenced = await events.wait_for(WorkCompletionFenced)
            with pytest.raises(EpochFenced):
                await worker.stop()
        finally:
            connection.execute("select setval('onecommit.epoch_fence', %s, true)", (before,))
    assert (fenced.work, fenced.attempt) == (accepted.work_id, 1)
    assert fenced.digest == hashlib.sha256(b'"paid"').hexdigest()
    worker._failure = None  # the fixture stops it once more


async def test_a_fenced_worker_ends_though_a_claim_waits_for_its_next_incarnation(
    app: App, database: Database, worker_of: StartWorker
):
    """The registration is refused, so what waits for it would wait for ever."""
    charge = define(app)

    @charge.executor
    async def run(invocation: WorkInvocation, payload: dict) -> str:
        return "paid"

    await accept(charge)
    due = "update onecommit.dispatch set discover_at = clock_timestamp() + %s::interval"
    with database.connect() as connection:
        connection.execute(due, ("1 hour",))
        worker = await worker_of()
        parts = worker._machinery
        connection.execute("select pg_advisory_lock(onecommit.schema_lock_class(), 0)")
        worker._replace(parts.incarnation.worker)
        connection.execute(due, ("0",))
        parts.work.wake()
        claims = parts.work._dispatcher._claims
        await eventually(lambda: len(claims) > 0, what="a claim waits")
        connection.execute("update onecommit.store_metadata set writer_min = 1000000")
        try:
            connection.execute("select pg_advisory_unlock(onecommit.schema_lock_class(), 0)")
            with pytest.raises(EpochFenced, match="Upgrade the onecommit package"):
                async with asyncio.timeout(PATIENCE):
                    await worker.run()
        finally:
            connection.execute("update onecommit.store_metadata set writer_min = 1")
    worker._failure = None  # the fixture stops it once more
