"""The web application: its routes, and a worker that lives as long as it does."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI

from onecommit import OnecommitError
from onecommit.worker import Worker

# The executors are imported for what they register.
from payments import executors, operators, problems, shops, webhooks  # noqa: F401
from payments.contracts import app
from payments.database import POOL_SIZE, create_tables, pool
from payments.provider import provider
from payments.settings import Settings


def create(settings: Settings | None = None) -> FastAPI:
    """The application; also for ``uvicorn --factory payments.service:create``."""
    settings = settings or Settings.from_environment()
    web = FastAPI(title="Payments", lifespan=partial(lifespan, settings=settings))
    web.state.settings = settings
    for part in (webhooks, shops, operators):
        web.include_router(part.router)
    web.add_exception_handler(OnecommitError, problems.refused)
    return web


@asynccontextmanager
async def lifespan(_: FastAPI, *, settings: Settings) -> AsyncIterator[None]:
    """Open what the routes and the executors use; at the end let the worker finish what it runs."""
    async with (
        app,
        pool,
        provider.connected(settings.provider_url, timeout=settings.provider_timeout),
    ):
        await create_tables()
        async with app.worker(application_connections=POOL_SIZE) as worker:
            watch = asyncio.create_task(end_with(worker))
            yield
            watch.cancel()


async def end_with(worker: Worker) -> None:
    """End the process, in good order, when the store has fenced its worker: after a restore it must not go on."""
    await worker.stop_requested()
    os.kill(os.getpid(), signal.SIGTERM)
