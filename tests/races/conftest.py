"""The store that the races share, and the attempt that most of them are about."""

import pytest

from tests.engine import Attempt
from tests.logins import logins, shared_logins
from tests.stores import Store, engine, shared_store, store
from tests.works import works

__all__ = ["engine", "logins", "shared_logins", "shared_store", "store", "works"]


@pytest.fixture
def attempt(store: Store) -> Attempt:
    """An open attempt of a worker that has ended, so that rescue wants it too."""
    worker = store.engine()
    [attempt] = worker.take()
    worker.retire()
    return attempt
