"""What the manifest grants to the Work runtime is what its operations need, found in their bodies."""

import pytest

from onecommit import schema
from onecommit.errors import InvalidArgument

from tests.catalog.routines import Catalog, capabilities
from tests.stores import Store

pytestmark = pytest.mark.pg


def test_the_work_runtime_may_call_what_its_operations_call_and_nothing_else(shared_store: Store):
    """They run as their caller; row-level security calls current_scope as whoever reads."""
    catalog = Catalog(shared_store.observer)
    granted = {name for name, e in capabilities().items() if "work_runtime" in e["grants"]}
    granted.remove("store_status")  # everybody's, and the only one that does not run as its caller
    operations = {name for name in granted if capabilities()[name]["class"] == "coupled"}
    reached = set().union(*(catalog.callees(name) for name in operations))
    assert granted == reached | {"current_scope"}
    assert not any(catalog.routines[name].is_definer for name in reached)


def test_grants_are_written_for_roles_under_any_name():
    """In one order, each quoted."""
    text = schema.grants({'z"1': ["work_dispatcher"], "a": ["producer"]}, schema="other store")
    assert text == schema.grants(
        {"a": ["producer"], 'z"1': ["work_dispatcher"]}, schema="other store"
    )
    assert text.index('to "a"') < text.index('to "z""1"')
    assert (
        'grant execute on function "other store".enqueue_job(text, text, text, integer, integer, jsonb, bigint) to "a";'
        in text
    )
    assert (
        'on function "other store".discover_work_dispatch(text[], text[], integer) to "z""1";'
        in text
    )


def test_a_capability_that_is_not_there_is_refused():
    for name in ("owner", "superuser"):
        with pytest.raises(InvalidArgument, match=f"roles: a asks for {name}"):
            schema.grants({"a": [name]})
