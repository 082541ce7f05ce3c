"""The store that these tests share."""

from tests.stores import engine, shared_store, store

__all__ = ["engine", "shared_store", "store"]
