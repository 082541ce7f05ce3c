"""Which schema names are accepted."""

import pytest

from onecommit.errors import InvalidArgument
from onecommit.schema.naming import checked_schema_name, render


@pytest.mark.parametrize(
    "name", ["onecommit", "we ird", "Jobs-2.b", "_x", "9lives", "ärger", "x" * 63]
)
def test_a_name_that_quoting_can_carry_is_accepted(name):
    """Case, spaces, dashes, dots and letters of any alphabet are fine: the name is always quoted."""
    assert checked_schema_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", " x", "x ", 'a"b', "a'b", "a$b", "a%b", "a\\b", "a\nb", "a\0b", "a;b",
        "x" * 64, "ä" * 32, "pg_jobs", "PG_jobs", "public", "information_schema",
    ],
)  # fmt: skip
def test_a_name_that_could_leave_its_quotes_is_refused(name):
    """The refusal names the field and says what is accepted."""
    with pytest.raises(InvalidArgument, match=r"schema: ") as refused:
        checked_schema_name(name)
    assert refused.value.field == "schema"


def test_both_placeholders_are_replaced():
    """The quoted one becomes an identifier, the literal one a string."""
    text = """select '@schema@' from "@schema@".t, '"@schema@".t'::regclass"""
    assert render(text, "we ird") == """select 'we ird' from "we ird".t, '"we ird".t'::regclass"""
