"""DBOS Transact: one durable workflow with one step for each item, through a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from dbos import DBOS, DBOSClient, EnqueueOptions, run_dbos_database_migrations

from benchmarks.adapters.contract import Handled
from benchmarks.adapters.psycopg_client import scalar

_QUEUE = "bench"
_WORKFLOW = "effect"
_POLL_SECONDS = 0.05
_OPEN = (
    "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING', 'DELAYED')"
)


class DbosAcceptor:
    """Enqueues through the client, whose calls block, in a thread for each producer."""

    def __init__(self, client: DBOSClient, threads: ThreadPoolExecutor, scopes: int) -> None:
        self._client = client
        self._scopes = scopes
        self._threads = threads

    async def accept(self, number: int) -> None:
        options: EnqueueOptions = {
            "queue_name": _QUEUE,
            "workflow_name": _WORKFLOW,
            "workflow_id": f"command-{number}",
            "authenticated_user": f"scope-{number % self._scopes}",
        }
        await asyncio.get_running_loop().run_in_executor(
            self._threads, self._client.enqueue, options, number
        )


class DbosWork:
    """Each item: a workflow, its dequeue, the record of its step, its result. No permit, no fence."""

    name = "dbos"
    distribution = "dbos"
    settings = f"async workflow with one step, queue polled every {_POLL_SECONDS} s"

    async def setup(self, dsn: str) -> None:
        await asyncio.to_thread(run_dbos_database_migrations, dsn)

    @asynccontextmanager
    async def acceptor(
        self, dsn: str, *, connections: int, scopes: int
    ) -> AsyncIterator[DbosAcceptor]:
        client = DBOSClient(system_database_url=dsn, system_database_pool_size=connections)
        try:
            with ThreadPoolExecutor(connections) as threads:
                yield DbosAcceptor(client, threads, scopes)
        finally:
            client.destroy()

    async def work(self, dsn: str, handled: Handled) -> None:
        DBOS(
            config={
                "name": "bench",
                "system_database_url": dsn,
                "application_version": "bench",
                "log_level": "ERROR",
            }
        )

        @DBOS.step()
        async def call_provider(number: int) -> None:
            handled(number)

        @DBOS.workflow(name=_WORKFLOW)
        async def effect(number: int) -> None:
            await call_provider(number)

        DBOS.launch()
        await DBOS.register_queue_async(_QUEUE, polling_interval_sec=_POLL_SECONDS)
        await asyncio.Event().wait()

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, _OPEN)


ADAPTER = DbosWork()
