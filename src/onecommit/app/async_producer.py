"""Enqueueing jobs of one kind."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, ParamSpec

from onecommit.app.enqueue_plan import EnqueuePlan
from onecommit.app.gathering import Gathering  # async-only
from onecommit.app.stores import Stores
from onecommit.domain.job import Enqueued
from onecommit.drivers.driver import AsyncDriver
from onecommit.store.async_store import AsyncStore  # async-only

P = ParamSpec("P")


class AsyncProducer(Generic[P]):
    """Enqueues jobs of one kind on a connection of the App, or in a caller's transaction."""

    def __init__(
        self, plan: EnqueuePlan, stores: Stores, *, driver: AsyncDriver | None = None
    ) -> None:
        self._plan = plan
        self._stores = stores
        self._driver = driver
        self._gathering: Gathering | None = None  # async-only

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Enqueue one job with these arguments.

        Raises:
            InvalidArgument: An argument does not fit the handler or cannot be stored.
        """
        if self._driver is None:
            store = await self._stores.async_store()
            if self._plan.is_plain:  # async-only
                text = self._plan.encode(args, kwargs)  # async-only
                return await self._gathering_of(store).enqueue(text)  # async-only
            return await store.run(self._plan.one(args, kwargs, epoch=store.epoch))
        epoch = await self._stores.async_epoch(self._driver)
        return await self._driver.run(self._plan.one(args, kwargs, epoch=epoch))

    async def enqueue_many(self, items: Iterable[Mapping[str, Any]]) -> list[Enqueued]:
        """Enqueue a job for each mapping of arguments: all of them in one transaction, or none."""
        if self._driver is None:
            return await self._enqueue_all(items)
        epoch = await self._stores.async_epoch(self._driver)
        # Every item is checked before the first is written.
        calls = list(self._plan.many(items, epoch=epoch))
        return [job for call in calls for job in await self._driver.run(call)]

    async def _enqueue_all(self, items: Iterable[Mapping[str, Any]]) -> list[Enqueued]:
        store = await self._stores.async_store()
        enqueued: list[Enqueued] = []
        async with store.transaction() as transaction:
            for call in self._plan.many(items, epoch=store.epoch):
                jobs = await transaction.run(call)
                enqueued.extend(jobs)
        return enqueued

    def _gathering_of(self, store: AsyncStore) -> Gathering:  # async-only
        if self._gathering is None or self._gathering.store is not store:  # async-only
            self._gathering = Gathering(self._plan, store)  # async-only
        return self._gathering  # async-only
