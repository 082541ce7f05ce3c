"""A store of the size that the gates name, for each PostgreSQL that they are asked on."""

from collections.abc import Iterator

import pytest

from tests.clusters import Cluster
from tests.gates.filling import fill
from tests.logins import Logins, store_of_plain_owner
from tests.works import Works


@pytest.fixture(scope="module")
def gate(gate_postgres: Cluster) -> Iterator[Works]:
    """100,000 items of Work in 100 scopes, nobody of its database a superuser."""
    with store_of_plain_owner(gate_postgres) as store:
        print(store.observer.execute("select version()").fetchone()[0])
        fill(store, scopes=100, items=1000)
        logins = Logins(database=store.database, owner=store.observer).create()
        yield Works(store, logins)
        logins.drop()
