"""A store without a superuser in it, and the logins of its roles: forced row-level security holds for its owner too."""

import pytest

from tests.clusters import GATE_MAJORS, Cluster, Clusters
from tests.logins import logins, shared_logins
from tests.logins import plain_store as shared_store
from tests.stores import engine, store
from tests.works import works

__all__ = ["engine", "logins", "shared_logins", "shared_store", "store", "works"]


@pytest.fixture(scope="session", params=GATE_MAJORS, ids=[f"pg{major}" for major in GATE_MAJORS])
def postgres(request: pytest.FixtureRequest, clusters: Clusters) -> Cluster:
    """Also the major that the text names."""
    return clusters.get(request.param)
