"""An application with Django, over psycopg and over psycopg2."""

import importlib
import itertools
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

from django import setup
from django.conf import settings
from django.db import connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from django.utils.connection import ConnectionProxy

from tests.drivers.callers import Caller, Inside, Opened, _SyncCaller

_BACKEND = "django.db.backends.postgresql"
_numbers = itertools.count()

if not settings.configured:
    # Naive times are the setting under which a receipt could lose its time zone.
    settings.configure(USE_TZ=False, LOGGING_CONFIG=None)
    setup()


class RolledBackError(Exception):
    """The block ended with a rollback that Django makes without an error."""


class DjangoCaller(_SyncCaller):
    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._blocks = ExitStack()

    async def begin(self) -> None:
        self._blocks.enter_context(transaction.atomic(using=self.connection.alias))

    async def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    async def commit(self) -> None:
        """After an inner block that failed, atomic() rolls back in silence; get_rollback() tells."""
        rolls_back = transaction.get_rollback(using=self.connection.alias)
        self._blocks.pop_all().close()
        if rolls_back:
            raise RolledBackError

    async def rollback(self) -> None:
        transaction.set_rollback(True, using=self.connection.alias)
        self._blocks.pop_all().close()

    async def close(self) -> None:
        self.connection.close()

    async def autocommit(self) -> None:
        """It is outside of atomic()."""

    async def block(self, inside: Inside) -> None:
        with transaction.atomic(using=self.connection.alias):
            await inside()

    savepoint = block


def django(wrapper_class: Any, *, pool: bool = False) -> Opened:
    """Django's connection over the driver of this backend, or `django.db.connection` over a pool."""

    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Caller]:
        alias = f"caller_{next(_numbers)}"
        connections[alias] = wrapper = wrapper_class(_database(dsn, pool=pool), alias)
        # The tests run on an event loop, where Django refuses to wait unless it is told.
        with _environment("DJANGO_ALLOW_ASYNC_UNSAFE", "true"):
            try:
                yield DjangoCaller(ConnectionProxy(connections, alias) if pool else wrapper)
            finally:
                wrapper.in_atomic_block = False  # a test may have left its block open
                wrapper.close()
                if pool:
                    wrapper.close_pool()
                del connections[alias]

    return opened


def _database(dsn: str, *, pool: bool) -> dict[str, Any]:
    url = urlsplit(dsn)
    found = {
        "ENGINE": _BACKEND,
        "HOST": url.hostname,
        "PORT": url.port,
        "USER": url.username,
        "PASSWORD": url.password or "",
        "NAME": url.path[1:],
        "OPTIONS": {"pool": {"min_size": 0, "max_size": 1}} if pool else {},
    }
    return connections.configure_settings({"default": found})["default"]


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _over_psycopg2() -> Any:
    """The backend as it is where psycopg 3 is not installed: it decides when it is imported."""
    theirs = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(_BACKEND)
    }
    psycopg = {name: sys.modules[name] for name in list(sys.modules) if _is_psycopg(name)}
    sys.modules.update(dict.fromkeys(psycopg))
    try:
        return importlib.import_module(f"{_BACKEND}.base").DatabaseWrapper
    finally:
        for name in [name for name in sys.modules if name.startswith(_BACKEND)]:
            del sys.modules[name]
        sys.modules.update(theirs | psycopg)


def _is_psycopg(name: str) -> bool:
    return name.partition(".")[0] == "psycopg"


DJANGO_CALLERS: dict[str, Opened] = {
    "django": django(DatabaseWrapper),
    "django-pool": django(DatabaseWrapper, pool=True),
    "django-psycopg2": django(_over_psycopg2()),
}
