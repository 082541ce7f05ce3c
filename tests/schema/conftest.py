"""Databases and bundles for the tests of the schema manager."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from onecommit.embedded.binaries import wheel_directory
from onecommit.schema import packaged_bundle

from tests.clusters import Cluster, Database, binaries
from tests.schema.bundles import BundleWriter


@pytest.fixture
def dsn(empty_database: Database) -> str:
    """The DSN of an empty database, as superuser."""
    return empty_database.dsn


@pytest.fixture
def admin(empty_database: Database) -> Iterator[psycopg.Connection]:
    """A second session in autocommit mode, to look and to interfere."""
    with empty_database.connect(application_name="the test") as connection:
        yield connection


@pytest.fixture
def program(postgres: Cluster) -> Callable[[str], Path]:
    """Finds a client program of the server's own major, such as psql."""
    directory = binaries(postgres.major) or wheel_directory()
    return lambda name: directory / name


@pytest.fixture
def write_bundle(tmp_path: Path) -> BundleWriter:
    """Write a small bundle: the real store, one table more, and a few routines."""
    return BundleWriter(tmp_path, store=packaged_bundle().migrations[0].text)
