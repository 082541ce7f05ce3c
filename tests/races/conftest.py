"""The store that the races share, and the attempt that most of them are about."""

import pytest

from tests.engine import Attempt
from tests.stores import Store, engine, shared_store, store

__all__ = ["engine", "shared_store", "store"]


@pytest.fixture
def attempt(store: Store) -> Attempt:
    """An open attempt of a worker that has ended, so that rescue wants it too."""
    worker = store.engine()
    [attempt] = worker.take()
    worker.retire()
    return attempt
