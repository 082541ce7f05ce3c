"""Resolving callbacks through the App: async, sync and in a caller's transaction."""

import uuid
from collections.abc import Callable

import psycopg
import pytest

from onecommit import App, CallbackAnswer, InvalidArgument, JobContext, JobState
from onecommit.calls.attempts import claim_jobs
from onecommit.calls.callbacks import await_callbacks, register_callback
from onecommit.calls.workers import register_worker
from onecommit.domain.attempt import Attempt
from onecommit.domain.callback import Callback
from onecommit.domain.worker import WorkerInfo

pytestmark = pytest.mark.pg


class Waiting:
    """An attempt with a callback, as a worker has it."""

    def __init__(self, app: App, attempt: Attempt, callback: Callback) -> None:
        self.app = app
        self.job_id = attempt.job_id
        self.callback = callback

    async def state(self) -> JobState:
        return (await self.app.jobs.get(self.job_id)).state

    async def heard(self) -> list[str | None]:
        """The payloads that came, as JSON texts."""
        store = await self.app._stores.async_store()
        call = await_callbacks([self.callback], epoch=store.epoch)
        return [resolved.payload for resolved in await store.run(call)]


@pytest.fixture
async def waiting(app: App) -> Waiting:
    @app.job(queue="outside")
    async def wait(ctx: JobContext) -> None: ...

    await wait.enqueue()
    store = await app._stores.async_store()
    info = WorkerInfo(host="h", pid=1, version="0", queues=("outside",))
    worker = await store.run(register_worker("w", info, epoch=store.epoch))
    claim = claim_jobs(
        "outside",
        worker=worker,
        request=1,
        limit=1,
        lifetime_us=None,
        sleep=False,
        epoch=store.epoch,
    )
    [attempt] = (await store.run(claim)).attempts
    register = register_callback(
        attempt, callback_id=str(uuid.uuid4()), name=None, timeout_us=10**9, epoch=store.epoch
    )
    return Waiting(app, attempt, await store.run(register))


SYNC: dict[str, tuple[Callable[[App, str], CallbackAnswer], JobState]] = {
    "resume": (lambda app, each: app.sync.callbacks.resume(each, 1), JobState.WAITING),
    "complete": (lambda app, each: app.sync.callbacks.complete(each), JobState.COMPLETED),
    "fail": (lambda app, each: app.sync.callbacks.fail(each, reason="no"), JobState.DEAD),
    "retry": (lambda app, each: app.sync.callbacks.retry(each, reason="busy"), JobState.SCHEDULED),
}


@pytest.mark.parametrize("how", SYNC)
async def test_code_that_does_not_await_resolves_too(app: App, waiting: Waiting, how: str):
    """Once, as everybody."""
    resolve, state = SYNC[how]
    await waiting.heard()
    assert await waiting.state() is JobState.WAITING
    assert resolve(app, waiting.callback.id) is CallbackAnswer.ACCEPTED
    assert await waiting.state() is (JobState.RUNNING if how == "resume" else state)
    assert resolve(app, waiting.callback.id) is CallbackAnswer.ALREADY_RESOLVED


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_the_resolution_and_the_callers_rows_commit_together(
    app: App, waiting: Waiting, ending: str
):
    """On an async connection; rolled back, the callback is still pending."""
    async with await psycopg.AsyncConnection.connect(app.settings.dsn) as connection:
        await connection.execute("create table if not exists event (job bigint)")
        await connection.execute("insert into event values (%s)", (waiting.job_id,))
        callbacks = app.callbacks.in_tx(connection)
        assert await callbacks.complete(waiting.callback.id, {"a": 1}) is CallbackAnswer.ACCEPTED
        await getattr(connection, ending)()
    committed = ending == "commit"
    assert await waiting.state() is (JobState.COMPLETED if committed else JobState.RUNNING)
    later = await app.callbacks.resume(waiting.callback.id)
    assert later is (CallbackAnswer.ALREADY_RESOLVED if committed else CallbackAnswer.ACCEPTED)


async def test_a_sync_connection_resolves_in_its_transaction(app: App, waiting: Waiting):
    with psycopg.connect(app.settings.dsn) as connection:
        answer = app.callbacks.in_tx(connection).resume(waiting.callback.id, ["é"])
        assert answer is CallbackAnswer.ACCEPTED
        connection.rollback()
        assert await waiting.heard() == []
        app.callbacks.in_tx(connection).resume(waiting.callback.id, ["é"])
    assert await waiting.heard() == ['["é"]']


async def test_an_id_may_be_a_uuid_or_its_text(app: App):
    for unknown in (uuid.uuid4(), str(uuid.uuid4()), uuid.uuid4().hex.upper()):
        assert await app.callbacks.resume(unknown) is CallbackAnswer.UNKNOWN


@pytest.mark.parametrize("bad", ["", "42", "x" * 10_000, "a\0b", None, 7])
async def test_what_is_no_id_is_refused(app: App, bad: object):
    """By name and without its value."""
    with pytest.raises(InvalidArgument) as refused:
        await app.callbacks.resume(bad)
    assert refused.value.field == "callback_id"
    assert "x" * 100 not in str(refused.value)


@pytest.mark.parametrize(
    "payload",
    ["a\0b", "\ud800", float("nan"), {"deep": ["a\0"]}, "x" * 1_100_000, object()],
    ids=["NUL", "surrogate", "NaN", "nested NUL", "too large", "no JSON"],
)
async def test_a_payload_that_cannot_be_stored_changes_nothing(
    app: App, waiting: Waiting, payload: object
):
    """The callback stays pending."""
    with pytest.raises(InvalidArgument, match="payload"):
        await app.callbacks.resume(waiting.callback.id, payload)
    with pytest.raises(InvalidArgument, match="result"):
        await app.callbacks.complete(waiting.callback.id, payload)
    assert await app.callbacks.resume(waiting.callback.id) is CallbackAnswer.ACCEPTED


async def test_a_reason_with_nul_is_refused(app: App, waiting: Waiting):
    for resolve in (app.callbacks.fail, app.callbacks.retry):
        with pytest.raises(InvalidArgument) as refused:
            await resolve(waiting.callback.id, reason="a\0b")
        assert refused.value.field == "reason"
