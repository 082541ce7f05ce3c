"""capabilities.toml says of every routine who may call it, as whom it runs and what it locks; pg_proc agrees."""

import pytest

from tests.catalog.routines import LOCK_ORDER, Catalog, capabilities
from tests.stores import Store

pytestmark = pytest.mark.pg

ROLES = {
    "producer",
    "worker",
    "finalizer",
    "resolver",
    "operator",
    "reader",
    "work_acceptor",
    "work_dispatcher",
    "work_runtime",
    "work_operator",
    "work_retention",
}


@pytest.fixture
def catalog(shared_store: Store) -> Catalog:
    return Catalog(shared_store.observer)


def test_the_file_names_exactly_the_routines_that_are_installed(catalog: Catalog):
    """Nothing is forgotten, nothing is overloaded."""
    assert set(capabilities()) == set(catalog.routines)
    assert catalog.count == len(catalog.routines)


def test_security_is_as_stated(catalog: Catalog):
    """Definer or invoker."""
    stated = {name: entry["security"] == "definer" for name, entry in capabilities().items()}
    assert stated == {name: routine.is_definer for name, routine in catalog.routines.items()}


def test_a_definer_is_public_and_the_public_ones_are_definers():
    """An internal definer would be a door without a name; only the owner's DDL and the Work runtime run as callers."""
    for name, entry in capabilities().items():
        assert (entry["security"] == "definer") == (
            entry["class"] == "public" and entry["grants"] not in (["owner"], ["work_runtime"])
        ), name


def test_grants_go_to_known_roles():
    """Of internal routines only what the Work runtime's operations and row-level security call as their caller."""
    for name, entry in capabilities().items():
        if entry["class"] == "internal":
            allowed = ["work_runtime", "reader"] if name == "current_scope" else ["work_runtime"]
            assert entry["grants"] in ([], allowed), name
        else:
            assert entry["grants"], name
        assert set(entry["grants"]) <= ROLES or entry["grants"] == ["owner"], name
    assert [name for name, entry in capabilities().items() if "finalizer" in entry["grants"]] == [
        "store_status",
        "complete_job",
    ]


def test_locks_are_as_stated(catalog: Catalog):
    """Found in the bodies of a routine and of all that it calls."""
    stated = {name: entry["locks"] for name, entry in capabilities().items()}
    assert stated == {name: catalog.locks(name) for name in catalog.routines}
    assert set().union(*stated.values()) == set(LOCK_ORDER)


def test_every_advisory_lock_has_a_class_of_ours(catalog: Catalog):
    """A lock in the one-number form or of a made-up class could meet an application's own."""
    for routine in catalog.routines.values():
        assert bool(routine.advisory_calls) == bool(routine.own_locks), routine.name


def test_runtime_mutations_hold_the_schema_lock(catalog: Catalog):
    """So a migration or a new epoch waits for them; readers do without."""
    readers = {
        "attempt_status",
        "closed_by_callback",
        "completed_attempts",
        "discover_work_dispatch",
        "mark_work_sleeper",
        "connection_budget",
        "queue_lanes",
        "store_status",
        "add_lanes",
    }
    for name, entry in capabilities().items():
        if entry["class"] == "public" and "reader" not in entry["grants"] and name not in readers:
            assert entry["locks"][0] == "schema", name


def test_dynamic_statements_are_as_stated(catalog: Catalog):
    """Everything else is fixed text."""
    stated = {name for name, entry in capabilities().items() if entry.get("dynamic")}
    assert stated == {name for name, routine in catalog.routines.items() if routine.is_dynamic}
