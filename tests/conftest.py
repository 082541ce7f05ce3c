"""Servers and databases for every test that needs PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters import GATE_MAJORS, MAJORS, Cluster, Clusters, Database
from tests.strict import LIFECYCLE, SINGLE_ROLE, not_strict

TESTS = Path(__file__).resolve().parent


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


def pytest_runtest_call(item: pytest.Item) -> None:
    """What a test of the lifecycle shows it shows of the strict profile: no fixture may have brought another store."""
    path = item.path.relative_to(TESTS)
    if path.parts[0] in LIFECYCLE and path.as_posix() not in SINGLE_ROLE:
        fixtures = item._fixtureinfo.name2fixturedefs
        found = [
            name
            for name, definitions in fixtures.items()
            for each in definitions
            if each.cached_result and not_strict(each.cached_result[0]) and name != "empty_database"
        ]
        assert not found, f"not in the strict profile: {', '.join(found)}; see tests/strict.py"
