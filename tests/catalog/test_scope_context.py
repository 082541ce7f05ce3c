"""The scope that row-level security shows is set and cleared by the function that needs it."""

import psycopg
import pytest

from tests.catalog.routines import Catalog, capabilities
from tests.clusters import Database
from tests.stores import Store

pytestmark = pytest.mark.pg


def test_whoever_can_enter_a_scope_leaves_it(shared_store: Store):
    """A scope left behind would show its rows to later statements of the caller's transaction."""
    catalog = Catalog(shared_store.observer)
    entering = [
        name
        for name, entry in capabilities().items()
        if entry["class"] in {"public", "coupled"} and "lock_scope" in catalog.callees(name)
    ]
    assert entering
    for name in entering:
        assert "leave_scope" in catalog.callees(name), name


def test_a_clause_cannot_clear_it_in_a_store_without_superuser(empty_database: Database):
    """So the functions clear it themselves; when PostgreSQL allows the clause, use it."""
    with empty_database.connect() as connection:
        connection.execute("create role plain_owner")
        connection.execute("create schema plain authorization plain_owner")
        try:
            connection.execute("set role plain_owner")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    "create function plain.f() returns int language sql set onecommit.scope_id = '' return 1"
                )
        finally:
            connection.execute("reset role")
            connection.execute("drop schema plain; drop role plain_owner")
