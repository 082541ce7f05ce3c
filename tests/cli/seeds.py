"""Jobs and Work that the commands can be tried on, made by the owner."""

import asyncio
from typing import Any
from uuid import uuid4

from onecommit import App, JobContext, Safety, WorkView
from onecommit.calls.attempts import claim_jobs, finish_jobs
from onecommit.calls.callbacks import register_callback
from onecommit.calls.workers import register_worker
from onecommit.domain.attempt import Attempt
from onecommit.domain.callback import Callback
from onecommit.domain.closing import Finish
from onecommit.domain.job import Outcome
from onecommit.domain.worker import WorkerInfo
from onecommit.store.async_store import AsyncStore

from tests.clusters import Database
from tests.waiting_work import accept, define, leave_behind, suspend

PAYLOAD = "only-the-handler-reads-this"
"""Stands in every argument, progress and exception."""


class Seeds:
    """What one test needs of a store."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def jobs(self, *, queue: str = "email", count: int = 1, **options: Any) -> list[int]:
        """Ready jobs, or what the options make of them."""

        async def enqueue() -> list[int]:
            async with App(self.database.observer_dsn) as app:
                jobs = [await _job(app, queue).options(**options).enqueue(to=PAYLOAD)]
                jobs += [
                    await _job(app, queue).options(**options).enqueue(to=PAYLOAD)
                    for _ in range(count - 1)
                ]
                return [job.job_id for job in jobs]

        return asyncio.run(enqueue())

    def running(self, *, queue: str = "email") -> int:
        """A job that a worker has claimed, which lives."""
        [job] = self.jobs(queue=queue)
        asyncio.run(_claim(self.database, queue))
        return job

    def waiting(self, *, queue: str = "outside") -> Callback:
        """A callback that the handler of a running job has registered."""
        self.jobs(queue=queue)
        return asyncio.run(_ask(self.database, queue))

    def dead(self, *, queue: str = "email") -> int:
        """A job that failed for good."""
        [job] = self.jobs(queue=queue)
        asyncio.run(_claim(self.database, queue, fail=True))
        return job

    def work(self, safety: Safety = Safety.PROVIDER_KEYED) -> WorkView:
        """Work whose provider never answered."""

        async def prepare() -> WorkView:
            async with App(self.database.observer_dsn) as app:
                return await suspend(app, define(app, safety))

        return asyncio.run(prepare())

    def pending(self) -> WorkView:
        """Work that no worker has looked at."""

        async def prepare() -> Any:
            async with App(self.database.observer_dsn) as app:
                accepted = await accept(define(app))
                return await app.works.get(accepted.work_id)

        return asyncio.run(prepare())

    def left_behind(self) -> WorkView:
        """Work of an older epoch."""
        view = self.pending()
        leave_behind(self.database, view.work_id)
        return view


def _job(app: App, queue: str) -> Any:
    known = app.registry.get("send")
    if known is None:

        @app.job(queue=queue, name="send")
        async def send(ctx: JobContext, to: str) -> None: ...

        app.seeded = send
    return app.seeded


async def _ask(database: Database, queue: str) -> Callback:
    async with App(database.observer_dsn) as app:
        store = await app._stores.async_store()
        attempt, *_ = await _attempts(store, queue)
        call = register_callback(
            attempt, callback_id=str(uuid4()), name="provider", timeout_us=10**9, epoch=store.epoch
        )
        return await store.run(call)


async def _claim(database: Database, queue: str, *, fail: bool = False) -> None:
    async with App(database.observer_dsn) as app:
        store = await app._stores.async_store()
        attempts = await _attempts(store, queue)
        if fail:
            detail = f'{{"type": "BankClosed", "error": "{PAYLOAD}"}}'
            finishes = [
                Finish(attempt=each, outcome=Outcome.FAILED, code="handler_error", detail=detail)
                for each in attempts
            ]
            assert await store.run(finish_jobs(finishes, epoch=store.epoch)) == []


async def _attempts(store: AsyncStore, queue: str) -> tuple[Attempt, ...]:
    """All that is ready in the queue, claimed by a worker of its own."""
    info = WorkerInfo(host="h", pid=1, version="0", queues=(queue,))
    worker = await store.run(register_worker(f"worker-of-{queue}", info, epoch=store.epoch))
    call = claim_jobs(
        queue, worker=worker, request=1, limit=99, lifetime_us=None, sleep=False, epoch=store.epoch
    )
    claim = await store.run(call)
    assert claim.attempts
    return claim.attempts
