"""What no routine of the protocol may do is named, wherever it hides: in an operation, in a helper, in a trigger."""

import pytest

from tests.doctor.examinations import patient, told
from tests.stores import Store

pytestmark = pytest.mark.pg

PLACES = {
    "pause_queue": "an operation that runs as its owner",
    "record_action": "→ record_action)",
    "guard_work": "(a trigger)",
}
# A statement, and what is said of it.
CONSTRUCTS = {
    "execute 'select 1';": "runs a text as SQL",
    "perform query_to_xml('select 1', true, true, '');": "runs a text as SQL",
    "execute format('delete from %I.claim', 'onecommit');": "runs a text as SQL",
    "set local role postgres;": "changes the role",
    "reset role;": "changes the role",
    "set session authorization default;": "changes the role",
    "set local search_path = public;": "changes a setting",
    "perform set_config('search_path', 'public', true);": "changes a setting that is not ours",
    "perform set_config('ro' || 'le', 'postgres', true);": "changes a setting that is not ours",
    "create temporary table claim ();": "defines or grants something",
    "grant all on all tables in schema onecommit to public;": "defines or grants something",
    "/* hidden */ drop table if exists onecommit.claim;": "defines or grants something",
    "truncate onecommit.claim;": "defines or grants something",
    "commit;": "ends the transaction",
    "if true then rollback; end if;": "ends the transaction",
    "copy onecommit.claim to '/tmp/claim';": "reaches outside the database",
    "perform pg_read_file('/etc/passwd');": "reaches outside the database",
    "perform lo_import('/etc/passwd');": "reaches outside the database",
    "perform pg_terminate_backend(1);": "acts on other sessions",
    "perform pg_sleep(1);": "waits on purpose",
    "perform count(*) from claim;": "names claim without a schema",
    "delete from only claim c;": "names claim without a schema",
    "perform 1 from onecommit.claim join completion using (slot);": "names completion without a schema",
    "perform app.helper(1);": "uses app.helper, of another schema",
    "perform 1 from app.invoice;": "uses app.invoice, of another schema",
    "perform pg_temp.trap();": "uses pg_temp.trap, of another schema",
    "perform 1 operator(public.=) 2;": "uses public.=, of another schema",
}
INNOCENT = """
-- execute 'select 1'; commit; set role postgres;
perform 'begin execute x; drop table claim; set role postgres' || $text$ ; commit; $text$;
raise notice 'from claim' using hint = 'truncate it';
perform set_config('onecommit.scope_id', '', true);
perform 1 from onecommit.claim c where c.epoch is distinct from c.label for update skip locked;
"""


def put(store: Store, statement: str, *routines: str) -> list[str]:
    """The findings once the statement stands first in each of the routines."""
    with patient(store.observer) as broken:
        broken.do("set local check_function_bodies = off")
        for routine in routines:
            [(text,)] = broken.connection.execute(
                "select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'onecommit'::regnamespace"
                " and p.proname = %s",
                (routine,),
            ).fetchall()
            begin = "\nbegin\n" if "\nbegin\n" in text else " begin "
            broken.do(text.replace(begin, f"{begin}{statement}\n", 1))
        return told(broken.examine())


@pytest.mark.parametrize("statement", CONSTRUCTS)
def test_a_prohibited_construct_is_named(shared_store: Store, statement: str):
    """With the routine that has it and the way that leads there, in each of the three places."""
    lines = [
        line for line in put(shared_store, statement, *PLACES) if line.startswith("constructs: ")
    ]
    for place, way in PLACES.items():
        assert any(
            f"{place}(" in line and CONSTRUCTS[statement] in line and way in line for line in lines
        ), lines


def test_what_only_looks_like_one_is_not(shared_store: Store):
    """Comments, texts, hints, our own setting, and syntax with the same words."""
    lines = put(shared_store, INNOCENT, "guard_work")
    assert lines == ["routine_bodies: guard_work() has another body than the package"]
