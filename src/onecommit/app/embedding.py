"""A store on an embedded PostgreSQL server."""

import os
import threading

from onecommit import schema as schema_manager
from onecommit.domain.settings import StoreSettings
from onecommit.embedded import EmbeddedPostgres, Server


class EmbeddedStore:
    """Finds or starts the server when it is first asked for, with the schema and an epoch in place."""

    def __init__(self, data_dir: str | os.PathLike[str] | None, *, schema: str) -> None:
        self._data_dir = data_dir
        self._postgres = EmbeddedPostgres(data_dir)
        self._schema = schema_manager.checked_schema_name(schema)
        self._lock = threading.Lock()

    def start(self) -> StoreSettings:
        """How to reach the store; a server that already runs on the data directory is shared."""
        with self._lock:
            running = None if self._data_dir is None else Server.find(self._data_dir)
            dsn = (running or self._postgres.start()).dsn()
            schema_manager.apply(dsn, schema=self._schema)
            identity = schema_manager.ensure_epoch(
                dsn, schema=self._schema, actor="onecommit", reason="embedded store"
            )
        return StoreSettings(
            dsn=dsn, schema=self._schema, store_id=identity.store_id, epoch=identity.epoch
        )

    def stop(self) -> None:
        """Stop the server, if this object started it; the next `start` starts it again."""
        with self._lock:
            self._postgres.stop()
