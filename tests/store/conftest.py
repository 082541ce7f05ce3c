"""Stores on a fresh database."""

from collections.abc import AsyncIterator

import pytest

from onecommit.domain.settings import StoreSettings
from onecommit.store.async_store import AsyncStore

from tests.clusters import Database


@pytest.fixture
async def store(database: Database) -> AsyncIterator[AsyncStore]:
    """An open store with room for two connections."""
    async with AsyncStore(StoreSettings(dsn=database.dsn, max_connections=2)) as opened:
        yield opened
