"""A store without a superuser in it, and the logins of its roles: forced row-level security holds for its owner too."""

from tests.logins import logins, shared_logins
from tests.logins import plain_store as shared_store
from tests.stores import engine, store
from tests.works import works

__all__ = ["engine", "logins", "shared_logins", "shared_store", "store", "works"]
