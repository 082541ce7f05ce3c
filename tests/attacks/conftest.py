"""One strict store for each module, and logins that attack it."""

from collections.abc import Iterator

import pytest

from tests.attacks.intruders import Target, under_attack
from tests.clusters import Cluster


@pytest.fixture(scope="module")
def target(postgres: Cluster) -> Iterator[Target]:
    """The store under attack."""
    with under_attack(postgres) as target:
        yield target
