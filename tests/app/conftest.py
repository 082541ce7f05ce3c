"""An App on a fresh database."""

from collections.abc import AsyncIterator

import pytest

from onecommit import App

from tests.clusters import Database


@pytest.fixture
async def app(database: Database) -> AsyncIterator[App]:
    """An open App without jobs; what a test opens for sync callers is closed as well."""
    opened = App(database.dsn)
    async with opened:
        yield opened
    opened.sync.close()
