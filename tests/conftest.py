"""Servers and databases for every test that needs PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.clusters import GATE_MAJORS, MAJORS, Cluster, Clusters, Database


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The package runs on asyncio only."""
    return "asyncio"


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    """The servers of this test process."""
    started = Clusters()
    yield started
    started.stop()


@pytest.fixture(scope="session", params=MAJORS, ids=[f"pg{major}" for major in MAJORS])
def postgres(request: pytest.FixtureRequest, clusters: Clusters) -> Cluster:
    """A running server: the test runs once on the oldest and once on the newest supported major."""
    return clusters.get(request.param)


@pytest.fixture(scope="session", params=GATE_MAJORS, ids=[f"pg{major}" for major in GATE_MAJORS])
def gate_postgres(request: pytest.FixtureRequest, clusters: Clusters) -> Cluster:
    """A running server of each major that the gates are asked on."""
    return clusters.get(request.param)


@pytest.fixture
def database(postgres: Cluster) -> Iterator[Database]:
    """A fresh database with the Onecommit schema and an active epoch."""
    with postgres.database(template=postgres.template) as fresh:
        yield fresh


@pytest.fixture
def empty_database(postgres: Cluster) -> Iterator[Database]:
    """A fresh database without the schema."""
    with postgres.database() as fresh:
        yield fresh
