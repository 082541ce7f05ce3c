"""An App on a fresh store in the strict profile."""

from collections.abc import AsyncIterator

import pytest

from onecommit import App

from tests.strict import StrictDatabase, database

__all__ = ["database"]


@pytest.fixture
async def app(database: StrictDatabase) -> AsyncIterator[App]:
    """An open App without jobs; what a test opens for sync callers is closed as well."""
    opened = App(database.dsn, **database.identity)
    async with opened:
        yield opened
    opened.sync.close()
