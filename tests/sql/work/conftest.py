"""The store that these tests share, and the logins of its roles."""

from tests.logins import logins, shared_logins
from tests.stores import engine, shared_store, store
from tests.works import works

__all__ = ["engine", "logins", "shared_logins", "shared_store", "store", "works"]
