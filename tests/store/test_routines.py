"""Every call fits the function that is installed, and the values it sends arrive as they were."""

import inspect
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onecommit import calls
from onecommit.calls.call import Call, Paramstyle, Routine, render
from onecommit.calls.literals import integer_array, nullable_text_array, text_array
from onecommit.calls.stores import STORE_STATUS
from onecommit.store.sync_store import SyncStore

from tests.clusters import Database

pytestmark = pytest.mark.pg

MODULES = [import_module(f"onecommit.calls.{found.name}") for found in iter_modules(calls.__path__)]
ROUTINES = {
    routine.name: routine
    for module in MODULES
    for _, routine in inspect.getmembers(module, lambda member: isinstance(member, Routine))
}
LONG_NAMES = {"timestamptz": "timestamp with time zone"}
SIGNATURE = """
    select p.proargnames[1:p.pronargs], array(select format_type(t, null) from unnest(p.proargtypes) t)
    from pg_proc p where p.pronamespace = 'onecommit'::regnamespace and p.proname = %s
"""


def test_each_call_names_the_parameters_and_types_of_its_function(database: Database):
    with database.connect() as connection:
        for routine in ROUTINES.values():
            ((names, types),) = connection.execute(SIGNATURE, (routine.name,)).fetchall()
            named = {name: LONG_NAMES.get(kind, kind) for name, kind in routine.parameters.items()}
            assert dict(zip(names or [], types, strict=True)) == named, routine.name


def test_each_column_that_a_call_reads_is_returned(database: Database):
    """The server plans the statement without running it."""
    with database.connect() as connection:
        for routine in ROUTINES.values():
            statement = render(routine, "onecommit", Paramstyle.FORMAT)
            connection.execute(f"explain {statement}", [None] * len(routine.parameters))


def test_a_schema_name_with_quotes_and_percent_signs_is_one_identifier():
    assert ' from "a""b%%c".store_status()' in render(STORE_STATUS, 'a"b%c', Paramstyle.FORMAT)
    assert ' from "a""b%c".store_status()' in render(STORE_STATUS, 'a"b%c', Paramstyle.NUMERIC)


ECHO = Routine(
    "echo", {"p_texts": "text[]", "p_nullable": "text[]", "p_numbers": "bigint[]"}, ("*",)
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
tricky = st.text(st.sampled_from("\"\\{},'NULnul \n\té\x01%:$"), max_size=8)


@pytest.fixture
def echo(database: Database):
    """Sends arrays through the store and returns what the server understood."""
    with database.connect() as connection:
        connection.execute(
            "create function onecommit.echo(p_texts text[], p_nullable text[], p_numbers bigint[],"
            " out a text[], out b text[], out c bigint[]) language sql"
            " as 'select p_texts, p_nullable, p_numbers'"
        )
    from onecommit.domain.settings import StoreSettings

    with SyncStore(StoreSettings(dsn=database.dsn)) as store:

        def send(a: list[str], b: list[str | None], c: list[int]) -> tuple[Any, ...]:
            arguments = (
                text_array(a, field="a"),
                nullable_text_array(b, field="b"),
                integer_array(c),
            )
            return store.run(Call(ECHO, arguments, lambda rows: tuple(rows[0])))

        yield send


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    a=st.lists(texts | tricky),
    b=st.lists(st.none() | texts | tricky),
    c=st.lists(st.integers(-(2**63), 2**63 - 1)),
)
def test_arrays_arrive_as_they_were(echo, a, b, c):
    assert echo(a, b, c) == (a, b, c)
