"""A store for one run of the tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from onecommit.app.embedding import EmbeddedStore
from onecommit.schema import DEFAULT_SCHEMA


@contextmanager
def temporary_store(*, schema: str = DEFAULT_SCHEMA) -> Iterator[str]:
    """Start a throw-away PostgreSQL with a migrated store, and return its DSN.

    While the block lasts, ONECOMMIT_DSN, ONECOMMIT_STORE_ID and ONECOMMIT_EPOCH name the store, so that an
    App without arguments uses it, if nothing was asked of that App before.
    """
    store = EmbeddedStore(None, schema=schema)
    settings = store.start()
    names = {
        "ONECOMMIT_DSN": settings.dsn,
        "ONECOMMIT_STORE_ID": str(settings.store_id),
        "ONECOMMIT_EPOCH": str(settings.epoch),
    }
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield settings.dsn
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        store.stop()
