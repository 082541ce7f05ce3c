"""capabilities.toml says of every routine who may call it, as whom it runs and what it locks; pg_proc agrees."""

import re
from importlib import resources
from itertools import takewhile

import pytest

from tests.catalog.routines import CALLABLE, LOCK_ORDER, Catalog, capabilities
from tests.stores import Store

pytestmark = pytest.mark.pg

ROLES = {
    "producer",
    "executor",
    "maintenance",
    "finalizer",
    "callback_ingress",
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


def test_signatures_are_as_stated(catalog: Catalog):
    """A grant names exactly one routine."""
    stated = {name: entry["arguments"] for name, entry in capabilities().items()}
    assert stated == {name: routine.arguments for name, routine in catalog.routines.items()}


def test_every_routine_is_in_one_class():
    """And in one that exists."""
    classes = {entry["class"] for entry in capabilities().values()}
    assert classes == CALLABLE | {"internal", "trigger"}


def test_the_triggers_are_exactly_what_guards_a_table(catalog: Catalog):
    """Nobody can call one, so nobody is granted one."""
    stated = {name for name, entry in capabilities().items() if entry["class"] == "trigger"}
    assert stated == {name for name, routine in catalog.routines.items() if routine.is_trigger}
    assert all(capabilities()[name]["grants"] == [] for name in stated)


def test_what_only_reads_writes_nothing_with_all_that_it_calls(catalog: Catalog):
    """No row, no sequence, no notice; and what may be read by a role that only reads is of this class."""
    for name, entry in capabilities().items():
        if entry["class"] == "read_only":
            writers = {n for n in catalog.callees(name) if catalog.routines[n].writes}
            assert writers == set(), name
        elif "reader" in entry["grants"]:
            assert entry["class"] == "internal", name


def test_only_the_worker_of_this_package_calls_what_is_coupled_to_it():
    """What others may call, from any language, is kept: it is public."""
    runtime = {"executor", "maintenance", "work_dispatcher", "work_runtime"}
    for name, entry in capabilities().items():
        if entry["class"] in {"public", "coupled"}:
            assert bool(set(entry["grants"]) & runtime) == (entry["class"] == "coupled"), name
            assert set(entry["grants"]) <= runtime or entry["class"] == "public", name


def test_the_actor_is_named_as_stated(catalog: Catalog):
    """By an argument of the routine, or by nothing but the login."""
    stated = {n: e.get("actor") for n, e in capabilities().items() if e["class"] in CALLABLE}
    assert stated == {name: catalog.routines[name].actor for name in stated}
    assert not any("actor" in e for n, e in capabilities().items() if n not in stated)


def test_a_definer_is_callable_and_the_callable_ones_are_definers():
    """An internal definer would be a door without a name; only the owner's DDL and the Work runtime run as callers."""
    for name, entry in capabilities().items():
        assert (entry["security"] == "definer") == (
            entry["class"] in CALLABLE and entry["grants"] not in (["owner"], ["work_runtime"])
        ), name


def test_grants_go_to_known_roles():
    """Of internal routines only what the Work runtime's operations and row-level security call as their caller."""
    for name, entry in capabilities().items():
        if entry["class"] in CALLABLE:
            assert entry["grants"], name
            assert set(entry["grants"]) <= ROLES or entry["grants"] == ["owner"], name
            assert (entry["grants"] == ["owner"]) == (entry["class"] == "migration"), name
        else:
            allowed = ["work_runtime", "reader"] if name == "current_scope" else ["work_runtime"]
            assert entry["grants"] in ([], allowed), name
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
    """So a migration or a new epoch waits for them; what only reads does without, and so does a sleeper's mark."""
    for name, entry in capabilities().items():
        if entry["class"] in {"public", "coupled"} and name != "mark_work_sleeper":
            assert entry["locks"][0] == "schema", name


def test_dynamic_statements_are_as_stated(catalog: Catalog):
    """Everything else is fixed text."""
    stated = {name for name, entry in capabilities().items() if entry.get("dynamic")}
    assert stated == {name for name, routine in catalog.routines.items() if routine.is_dynamic}


def test_the_headers_say_what_is_granted():
    """Who reads the file of a routine learns who may call it; what only other routines call names nobody."""
    said = {
        file.name.removesuffix(".sql"): capabilities_in(file.read_text())
        for area in resources.files("onecommit").joinpath("sql", "routines").iterdir()
        if area.is_dir()
        for file in area.iterdir()
    }
    granted = {
        name: set(entry["grants"]) if entry["class"] in CALLABLE else set()
        for name, entry in capabilities().items()
        if name in said
    }
    assert granted.keys() == said.keys()
    assert said == granted


def capabilities_in(text: str) -> set[str]:
    """Those after the word For in the comment at the head of a file."""
    header = " ".join(line[3:] for line in takewhile(lambda s: s[:2] == "--", text.splitlines()))
    names = "|".join(ROLES | {"owner", "every capability"})
    found = re.search(rf"\bFor ((?:{names})(?:, (?:{names}))*)\b", header)
    if found is None:
        return set()
    return ROLES if found[1] == "every capability" else set(found[1].split(", "))
