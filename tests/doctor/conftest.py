"""The store that these tests share."""

from tests.logins import shared_logins
from tests.stores import engine, shared_store, store

__all__ = ["engine", "shared_logins", "shared_store", "store"]
