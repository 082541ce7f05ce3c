"""One strict store for each module, and logins that attack it."""

from collections.abc import Iterator

import pytest

from tests.attacks.intruders import Target
from tests.clusters import Cluster
from tests.schema.provisioned import strict_store


@pytest.fixture(scope="module")
def target(postgres: Cluster) -> Iterator[Target]:
    """The store under attack; what a test leaves behind is the next one's."""
    with strict_store(postgres) as store:
        target = Target(store=store, major=postgres.major)
        yield target
        target.close()
