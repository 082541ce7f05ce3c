"""The connections of an App: opened when something is first asked of them."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from onecommit.calls.stores import store_status
from onecommit.domain.identity import Epoch
from onecommit.domain.settings import StoreSettings
from onecommit.domain.store import StoreStatus
from onecommit.drivers.driver import AsyncDriver, SyncDriver
from onecommit.store.async_store import AsyncStore
from onecommit.store.identity import checked_epoch
from onecommit.store.sync_store import SyncStore

_STORES: "weakref.WeakSet[Stores]" = weakref.WeakSet()


class StoreTarget(NamedTuple):
    """What a call on a caller's connection names, so that another database refuses it."""

    store_id: UUID
    epoch: Epoch


class Stores:
    """One async store for the running event loop, one sync store for every thread.

    `source` gives the settings; it may start a server for that, which `release` stops.
    """

    def __init__(
        self,
        source: Callable[[], StoreSettings],
        *,
        schema: str,
        release: Callable[[], None] | None = None,
    ) -> None:
        self.schema = schema
        self._source = source
        self._release = release
        self._settings: StoreSettings | None = None
        self._epoch: Epoch | None = None
        self._store_id: UUID | None = None
        self.forget_connections()
        _STORES.add(self)

    def forget_connections(self) -> None:
        """Begin without connections; after a fork, because those there are belong to the parent."""
        self._lock = threading.Lock()
        self._async: AsyncStore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock | None = None
        self._sync: SyncStore | None = None

    def settings(self) -> StoreSettings:
        """The settings, asked for once. Blocks while a server is started for them."""
        with self._lock:
            if self._settings is None:
                self._settings = self._source()
            return self._settings

    async def async_store(self) -> AsyncStore:
        """The open store of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._async is not None and self._loop is loop:
            return self._async
        if self._opening is None or self._loop is not loop:
            # Connections of a loop that has ended are of no use in this one.
            ended = self._async if self._loop is not None and self._loop.is_closed() else None
            self._loop, self._async, self._opening = loop, None, asyncio.Lock()
            if ended is not None:
                await ended.close()
        async with self._opening:
            if self._async is None:
                settings = self._settings
                if settings is None:
                    settings = await asyncio.to_thread(self.settings)
                self._async = await AsyncStore(settings).open()
            return self._async

    def sync_store(self) -> SyncStore:
        """The open store for callers without an event loop."""
        settings = self.settings()
        with self._lock:
            if self._sync is None:
                self._sync = SyncStore(settings).open()
            return self._sync

    async def async_epoch(self, driver: AsyncDriver) -> Epoch:
        """The epoch to pass on a caller's connection: the configured one, else what is found there."""
        return self._configured_epoch() or self._adopt(await driver.run(store_status()))

    def sync_epoch(self, driver: SyncDriver) -> Epoch:
        """The same for a sync connection."""
        return self._configured_epoch() or self._adopt(driver.run(store_status()))

    async def async_target(self, driver: AsyncDriver) -> StoreTarget:
        """Which store and epoch a caller's connection must lead to: configured, else as found there."""
        return self._configured_target() or self._adopt_target(await driver.run(store_status()))

    def sync_target(self, driver: SyncDriver) -> StoreTarget:
        """The same for a sync connection."""
        return self._configured_target() or self._adopt_target(driver.run(store_status()))

    async def async_close(self) -> None:
        """Close the connections of the running event loop, and stop a server that was started for us."""
        if self._async is not None and self._loop is asyncio.get_running_loop():
            await self._async.close()
        self._async = None
        if self._release is not None:
            await asyncio.to_thread(self._stop_server, self._release)

    def sync_close(self) -> None:
        """Close the connections of sync callers."""
        with self._lock:
            if self._sync is not None:
                self._sync.close()
            self._sync = None

    def _stop_server(self, release: Callable[[], None]) -> None:
        self.sync_close()
        with self._lock:
            self._settings = self._epoch = self._store_id = None
            release()

    def _configured_epoch(self) -> Epoch | None:
        if self._epoch is None:
            configured = self.settings().epoch
            self._epoch = None if configured is None else Epoch(configured)
        return self._epoch

    def _configured_target(self) -> StoreTarget | None:
        epoch, store_id = self._configured_epoch(), self.settings().store_id or self._store_id
        return None if epoch is None or store_id is None else StoreTarget(store_id, epoch)

    def _adopt_target(self, status: StoreStatus) -> StoreTarget:
        epoch = self._adopt(status)
        self._store_id = status.store_id
        return StoreTarget(status.store_id, epoch)

    def _adopt(self, status: StoreStatus) -> Epoch:
        self._epoch = checked_epoch(status, self.settings())
        return self._epoch


def _forget_connections() -> None:
    # The driver closes a connection only in the process that made it.
    for stores in list(_STORES):
        stores.forget_connections()


os.register_at_fork(after_in_child=_forget_connections)
