"""Callbacks as the App offers them: async, sync, or in a caller's transaction."""

from typing import overload

from onecommit.app.async_callbacks import AsyncCallbacks
from onecommit.app.sync_callbacks import SyncCallbacks
from onecommit.drivers.driver import (
    AsyncCallerConnection,
    SyncCallerConnection,
    async_driver_for,
    is_async_connection,
    sync_driver_for,
)


class Callbacks(AsyncCallbacks):
    """Resolves callbacks, alone or in a transaction of the caller."""

    @overload
    def in_tx(self, connection: AsyncCallerConnection) -> AsyncCallbacks: ...
    @overload
    def in_tx(self, connection: SyncCallerConnection) -> SyncCallbacks: ...
    def in_tx(
        self, connection: AsyncCallerConnection | SyncCallerConnection
    ) -> AsyncCallbacks | SyncCallbacks:
        """Resolve in the READ COMMITTED transaction that is open on the connection.

        The attempt can end in no other way until that transaction ends, so keep it short.
        """
        schema = self._stores.schema
        if is_async_connection(connection):
            driver = async_driver_for(connection, schema=schema)  # type: ignore[arg-type]
            return AsyncCallbacks(self._stores, self._registry, driver=driver)
        sync_driver = sync_driver_for(connection, schema=schema)  # type: ignore[arg-type]
        return SyncCallbacks(self._stores, self._registry, driver=sync_driver)
