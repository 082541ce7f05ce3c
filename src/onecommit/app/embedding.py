"""A store on an embedded PostgreSQL server."""

import os
import threading

from onecommit import schema as schema_manager
from onecommit.domain.settings import StoreSettings
from onecommit.embedded import EmbeddedPostgres


class EmbeddedStore:
    """Starts the server when it is first asked for, with the schema and an epoch in place."""

    def __init__(self, data_dir: str | os.PathLike[str] | None, *, schema: str) -> None:
        self._server = EmbeddedPostgres(data_dir)
        self._schema = schema
        self._lock = threading.Lock()

    def start(self) -> StoreSettings:
        """Start the server, unless this process did already; returns how to reach the store."""
        with self._lock:
            dsn = self._server.start().dsn()
            schema_manager.apply(dsn, schema=self._schema)
            identity = schema_manager.ensure_epoch(
                dsn, schema=self._schema, actor="onecommit", reason="embedded store"
            )
        return StoreSettings(
            dsn=dsn, schema=self._schema, store_id=identity.store_id, epoch=identity.epoch
        )
