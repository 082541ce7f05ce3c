"""A store for the run, and two ways for a test to leave nothing behind."""

from collections.abc import Iterator

import psycopg
import pytest
import shop

from onecommit.testing import discard_jobs, temporary_store


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    """A throw-away PostgreSQL with a migrated store and the application's own tables."""
    with temporary_store() as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute(shop.TABLE)
        yield dsn


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection on which everything is rolled back when the test ends."""
    with psycopg.connect(dsn) as connection, connection.transaction(force_rollback=True):
        yield connection


@pytest.fixture
def committed(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection that commits, for a test that runs jobs; what it leaves is removed."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
        connection.execute("truncate customer")
    discard_jobs(shop.app)
