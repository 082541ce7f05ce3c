"""Databases and bundles for the tests of the schema manager."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from onecommit.schema import packaged_bundle
from tests.schema.bundles import BundleWriter


@pytest.fixture(params=["54915", "54918"], ids=["pg15", "pg18"])
def dsn(request) -> Iterator[str]:
    """The DSN of an empty database, as superuser."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    server = f"host=/tmp/sm port={request.param} user=postgres"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"create database {name}")
        yield f"{server} dbname={name}"
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def write_bundle(tmp_path: Path) -> BundleWriter:
    """Write a small bundle: the real store, one table more, and a few routines."""
    return BundleWriter(tmp_path, store=packaged_bundle().migrations[0].text)


@pytest.fixture
def admin(dsn: str) -> Iterator[psycopg.Connection]:
    """A second session in autocommit mode, to look and to interfere."""
    with psycopg.connect(dsn, autocommit=True, application_name="the test") as connection:
        yield connection
