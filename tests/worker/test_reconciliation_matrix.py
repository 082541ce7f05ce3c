"""Every end of a caller-owned handler meets every evidence about its attempt: 10 ends, 8 kinds of evidence, 80 cells.

The table is written out here and compared with what a real store holds afterwards, and with what was reported.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from onecommit.app.app import App
from onecommit.app.context import CallerOwnedJobContext
from onecommit.calls.attempts import claim_jobs
from onecommit.calls.workers import register_worker
from onecommit.domain.attempt import Attempt
from onecommit.domain.evidence import AttemptStatus, Evidence
from onecommit.domain.job import Outcome
from onecommit.domain.outcome import Snooze
from onecommit.domain.retry import Retry
from onecommit.domain.settings import StoreSettings
from onecommit.domain.token import FinalizationReceipt, ReceiptEvidence, issue_receipt, issue_token
from onecommit.domain.worker import WorkerInfo
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import (
    AttemptFailed,
    CompletedThenRaised,
    NoReceipt,
    ReceiptWithoutCompletion,
    ResolvedAttempt,
    StaleAttempt,
    UnknownOutcome,
    UnresolvedAttempt,
)
from onecommit.worker import WorkerSettings
from onecommit.worker.jobs.kind import kinds_of
from onecommit.worker.jobs.running import Interruption
from onecommit.worker.machinery import Machinery, Reactions
from onecommit.worker.threads import HandlerThreads

from tests.engine import Engine
from tests.proxy import Proxy
from tests.stores import Store, store
from tests.strict import engine_of, shared_store
from tests.worker.harness import Events, eventually

__all__ = ["shared_store", "store"]
pytestmark = pytest.mark.pg

# Where nothing can be decided the budget is to be used up, elsewhere not even on a slow machine.
SHORT, LONG = 0.15, 60.0


class Fatal(BaseException):
    """Neither an error nor an exit."""


# What the handler returned or raised, and whether the worker had asked it to stop.
EXITS: dict[str, tuple[Any, BaseException | None, Interruption | None]] = {
    "receipt": ("own receipt", None, None),
    "nothing": (None, None, None),
    "foreign receipt": ("foreign receipt", None, None),
    "another outcome": (Snooze(timedelta(hours=1)), None, None),
    "error": (None, ValueError(), None),
    "BaseException": (None, Fatal(), None),
    "cancellation": (None, asyncio.CancelledError(), Interruption.CANCELLED),
    "timeout": (None, asyncio.CancelledError(), Interruption.TIMEOUT),
    "shutdown": (None, asyncio.CancelledError(), Interruption.SHUTDOWN),
    "lost worker": (None, asyncio.CancelledError(), Interruption.RESCUED),
}
EVIDENCE = (
    "completed",
    "in flight, then committed",
    "in flight, then rolled back",
    "open",
    "closed by another",
    "claim gone",
    "unreachable, completed",
    "unreachable, open",
)
# Where the job is, the code of its dead letter or the attempts it has used, and what was reported.
COMPLETED = {end: ("completed", 1, {CompletedThenRaised}) for end in EXITS} | {
    "receipt": ("completed", 1, set())
}
OPEN = {
    "receipt": ("scheduled", 1, {ReceiptWithoutCompletion}),
    "nothing": ("dead", "no_receipt", {NoReceipt}),
    "foreign receipt": ("dead", "no_receipt", {NoReceipt}),
    "another outcome": ("scheduled", 0, set()),
    "error": ("scheduled", 1, {AttemptFailed}),
    "BaseException": ("scheduled", 1, {AttemptFailed}),
    "cancellation": ("scheduled", 1, {AttemptFailed}),
    "timeout": ("scheduled", 1, {AttemptFailed}),
    "shutdown": ("scheduled", 0, set()),
    "lost worker": ("scheduled", 1, {AttemptFailed}),
}
SUPERSEDED = {end: ("cancelled", 1, {StaleAttempt}) for end in EXITS} | {
    "cancellation": ("cancelled", 1, set()),
    "lost worker": ("cancelled", 1, set()),
}
UNKNOWN = {end: ("untouched", 0, {UnknownOutcome}) for end in EXITS}
WAITED = {UnresolvedAttempt, ResolvedAttempt}


def expected(end: str, evidence: str) -> tuple[str, int | str, set[type]]:
    """The cell of the table."""
    match evidence:
        case "completed":
            return COMPLETED[end]
        case "open":
            return OPEN[end]
        case "closed by another":
            return SUPERSEDED[end]
        case "claim gone":
            return UNKNOWN[end]
        case "in flight, then committed" | "unreachable, completed":
            state, used, reported = COMPLETED[end]
        case _:
            state, used, reported = OPEN[end]
    return state, used, reported | WAITED


@dataclass(kw_only=True)
class Bench:
    """The executor of a worker whose loops do not run, and the means to make evidence."""

    machinery: Machinery
    events: Events
    engine: Engine
    store: Store
    proxy: Proxy

    async def claim(self) -> Attempt:
        """One attempt of a new job."""
        epoch = self.store.epoch
        self.engine.enqueue(kinds=["settle"], args=["{}"])
        info = WorkerInfo(host="test", pid=1, version="0", queues=("q",))
        worker = await self.machinery.store.run(register_worker("w", info, epoch=epoch))
        call = claim_jobs(
            "q", worker=worker, request=1, limit=1, lifetime_us=None, sleep=None, epoch=epoch
        )
        [attempt] = (await self.machinery.store.run(call)).attempts
        return attempt

    def complete(self, attempt: Attempt, engine: Engine) -> None:
        """What the handler's transaction does."""
        engine.sql("insert into app.invoice values (%s)", attempt.job_id)
        engine.call("complete_job", **attempt.token.portable._asdict(), progress=None)

    async def end(self, attempt: Attempt, end: str) -> "asyncio.Task[None]":
        """The handler of the attempt ends; what the executor then does goes on in a task."""
        result, error, interruption = EXITS[end]
        machinery = self.machinery

        async def run() -> None:
            held = machinery.executor.hold(attempt, machinery.stations["q"]._kinds["settle"])
            held.interruption = interruption
            returned = receipt_for(attempt, result)
            await machinery.executor.conclude(held, result=returned, error=error)
            machinery.executor.let_go(held)

        return asyncio.ensure_future(run())

    async def unresolved(self, ending: "asyncio.Task[None]") -> UnresolvedAttempt:
        """The budget is used up: the slot is free, nothing was issued and a watcher goes on."""
        await ending
        [unresolved] = self.events.of(UnresolvedAttempt)
        assert not len(self.machinery.running)
        assert self.machinery.reconciler.watchers == 1
        return unresolved

    async def decided(self) -> None:
        """The watcher has its answer."""
        await eventually(lambda: not self.machinery.reconciler.watchers, what="all is decided")

    def assert_undecided(self, attempt: Attempt) -> None:
        """Nobody has closed the attempt as far as others can see."""
        assert self.engine.state(attempt.job_id) == "running"


def receipt_for(attempt: Attempt, result: Any) -> Any:
    """What the handler returned."""
    evidence = ReceiptEvidence(
        contract_version=1,
        outcome=Outcome.COMPLETED,
        finished_at=attempt.claimed_at,
        transaction_id=1,
    )
    match result:
        case "own receipt":
            return issue_receipt(attempt.token, evidence)
        case "foreign receipt":
            other = attempt.token.portable._asdict() | {"batch_index": 2}
            return issue_receipt(issue_token(**other), evidence)
        case _:
            return result


@pytest.fixture
async def bench(store: Store, evidence: str) -> AsyncIterator[Bench]:
    undecidable = evidence.startswith(("in flight", "unreachable"))
    brief = evidence in ("open, then in flight", "open, then unreachable")
    budget = SHORT if undecidable else 2.0 if brief else LONG
    app = App(store.database.dsn, **store.database.identity)

    @app.caller_owned_job(queue="q", retry=Retry(first=timedelta(hours=1)))
    async def settle(ctx: CallerOwnedJobContext) -> FinalizationReceipt:
        raise NotImplementedError

    events = Events()
    async with Proxy(store.database.dsn) as proxy:
        settings = StoreSettings(dsn=proxy.dsn, **store.database.identity)
        async with AsyncStore(settings) as runtime_store:
            threads = HandlerThreads(limit=1)
            machinery = Machinery(
                runtime_store,
                settings=WorkerSettings(queues={"q": 1}, reconcile_budget=budget),
                kinds=kinds_of(app.registry, threads=threads),
                registry=app.registry,
                observed=False,
                threads=threads,
                info=WorkerInfo(host="test", pid=1, version="0", queues=("q",)),
                name="w",
                reactions=Reactions(
                    on_notice=lambda _: None,
                    on_cancelled=lambda _: None,
                    on_dead=lambda _: None,
                    on_error=_fail,
                    is_fatal=lambda _: False,
                    emit=events,
                ),
            )
            yield Bench(
                machinery=machinery,
                events=events,
                engine=store.engine(),
                store=store,
                proxy=proxy,
            )
            await machinery.reconciler.abandon()


def _fail(error: BaseException) -> None:
    raise error


@pytest.fixture
def caller(store: Store) -> Iterator[Engine]:
    """The application's connection."""
    with engine_of(store, "caller") as engine:
        yield engine


Scene = Callable[[Bench, Engine, Attempt, str], Awaitable[None]]


async def completed(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    with caller.open():
        bench.complete(attempt, caller)
    await (await bench.end(attempt, end))


async def in_flight(bench: Bench, caller: Engine, attempt: Attempt, end: str, ending: str) -> None:
    """Past the budget the backend that holds the attempt is named, and nothing was issued."""
    caller.begin()
    bench.complete(attempt, caller)
    unresolved = await bench.unresolved(await bench.end(attempt, end))
    assert unresolved.holder_pid == caller.pid
    bench.assert_undecided(attempt)
    getattr(caller, ending)()
    await bench.decided()


async def in_flight_committed(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    await in_flight(bench, caller, attempt, end, "commit")


async def in_flight_rolled_back(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    await in_flight(bench, caller, attempt, end, "rollback")


async def still_open(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    caller.begin()
    bench.complete(attempt, caller)
    caller.rollback()
    await (await bench.end(attempt, end))


async def superseded(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    assert bench.engine.cancel(attempt.job_id) == {attempt.job_id: "cancelled"}
    with pytest.raises(psycopg.Error), caller.open():
        bench.complete(attempt, caller)
    await (await bench.end(attempt, end))


async def claim_gone(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    """As after a failover to an older state."""
    bench.engine.sql("delete from onecommit.claim where batch_id = %s", attempt.batch_id)
    await (await bench.end(attempt, end))


async def unreachable(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    """Nothing is issued while the store cannot be asked."""
    bench.proxy.refuse()
    unresolved = await bench.unresolved(await bench.end(attempt, end))
    assert unresolved.holder_pid is None
    bench.proxy.accept()
    await bench.decided()


async def unreachable_completed(bench: Bench, caller: Engine, attempt: Attempt, end: str) -> None:
    with caller.open():
        bench.complete(attempt, caller)
    await unreachable(bench, caller, attempt, end)


SCENES: dict[str, Scene] = dict(
    zip(
        EVIDENCE,
        (
            completed,
            in_flight_committed,
            in_flight_rolled_back,
            still_open,
            superseded,
            claim_gone,
            unreachable_completed,
            unreachable,
        ),
        strict=True,
    )
)


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("end", EXITS)
async def test_every_handler_exit_meets_every_evidence(
    bench: Bench, caller: Engine, end: str, evidence: str
):
    """The job is where the table says, the rows are there exactly if it completed, and it was reported."""
    attempt = await bench.claim()
    await SCENES[evidence](bench, caller, attempt, end)
    state, used, reported = expected(end, evidence)
    assert {type(event) for event in bench.events.seen} == reported
    closed = bench.engine.value(
        "select count(*) from onecommit.completion where lane = %s and seq = %s",
        attempt.lane,
        attempt.seq,
    )
    if state == "untouched":
        assert closed == 0
    else:
        job = bench.engine.job(attempt.job_id)
        assert closed == 1
        assert (job.state, job.code if state == "dead" else job.attempt) == (state, used)
    rows = bench.engine.value("select count(*) from app.invoice")
    assert rows == (state == "completed")
    assert bench.machinery.reconciler.decided.total() == 1


def then(bench: Bench, happens: Callable[[], None]) -> None:
    """Something happens once, after the store has answered and before what follows from the answer."""
    inquiry = bench.machinery.reconciler._inquiry
    ask = inquiry.status

    async def ask_first(*args: Any, **kwargs: Any) -> AttemptStatus | None:
        status = await ask(*args, **kwargs)
        inquiry.status = ask
        happens()
        return status

    inquiry.status = ask_first


@pytest.mark.parametrize("evidence", ["open, then in flight", "open, then completed"])
async def test_what_happens_after_the_question_is_found_when_the_retry_is_recorded(
    bench: Bench, caller: Engine, evidence: str
):
    """The handler raised, and left a transaction behind that completes after the store has said "open"."""
    attempt = await bench.claim()

    def complete() -> None:
        caller.begin()
        bench.complete(attempt, caller)
        if evidence == "open, then completed":
            caller.commit()

    then(bench, complete)
    ending = await bench.end(attempt, "error")
    if evidence == "open, then in flight":
        unresolved = await bench.unresolved(ending)
        assert unresolved.holder_pid == caller.pid  # so the retry did not wait behind it
        caller.commit()
        await bench.decided()
    await ending
    assert bench.engine.job(attempt.job_id).state == "completed"
    [surprise] = bench.events.of(CompletedThenRaised)
    assert surprise.exit == "error"
    assert bench.machinery.reconciler.decided == {Evidence.COMPLETED_OTHERWISE: 1}


@pytest.mark.parametrize("evidence", ["open, then unreachable"])
async def test_a_retry_that_the_store_did_not_take_is_recorded_later(bench: Bench):
    """The answer was "open", and the connection was lost with the retry."""
    attempt = await bench.claim()
    then(bench, bench.proxy.refuse)
    await bench.unresolved(await bench.end(attempt, "error"))
    bench.assert_undecided(attempt)
    bench.proxy.accept()
    await bench.decided()
    assert bench.engine.job(attempt.job_id).state == "scheduled"
    assert bench.machinery.reconciler.decided == {Evidence.OPEN: 1}
