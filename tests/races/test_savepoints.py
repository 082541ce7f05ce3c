"""A completion inside a savepoint could be undone alone, so complete_job refuses one, in whatever form it comes."""

import psycopg
import pytest

from tests.engine import AUTHORITIES, Attempt, Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

CALL = "onecommit.complete_job({job_id}, {run_lease}, {claim_slot}, {receipt_id}, {batch_id}, {batch_index}, null)"

# What surrounds the call, and whether it is then inside a subtransaction.
INSIDE = {
    "open savepoint": ["savepoint a", "{call}"],
    "nested savepoints": ["savepoint a", "savepoint b", "{call}"],
    "inner released, outer open": ["savepoint a", "savepoint b", "release b", "{call}"],
    "after a rollback to an open savepoint": ["savepoint a", "rollback to a", "{call}"],
    "other writes in between": ["savepoint a", "insert into app.invoice values (0)", "{call}"],
    "a caught block": [
        "do $$ begin perform {bare}; exception when no_data_found then null; end $$"
    ],
    "a wrapper that swallows errors": [
        "select app.wrapper({job_id}, {run_lease}, {claim_slot}, {receipt_id}, {batch_id}, {batch_index})"
    ],
}
OUTSIDE = {
    "top level": ["{call}"],
    "a savepoint released before": [
        "savepoint a",
        "insert into app.invoice values (0)",
        "release a",
        "{call}",
    ],
    "a savepoint rolled back and released before": [
        "savepoint a",
        "insert into app.invoice values (0)",
        "rollback to a",
        "release a",
        "{call}",
    ],
    "a savepoint after": [
        "{call}",
        "savepoint a",
        "insert into app.invoice values (0)",
        "release a",
    ],
    "a savepoint rolled back after": [
        "{call}",
        "savepoint a",
        "insert into app.invoice values (0)",
        "rollback to a",
    ],
    "a block without handler": ["do $$ begin perform {bare}; end $$"],
    "another job completed before": ["{other}", "{call}"],
    "a caught block before": [
        "do $$ begin begin insert into app.invoice values (0); raise no_data_found; exception when no_data_found then null; end; end $$",
        "{call}",
    ],
}
WRAPPER = """
create or replace function app.wrapper(bigint, bigint, integer, bigint, bigint, integer) returns text language plpgsql as $$
begin
    perform onecommit.complete_job($1, $2, $3, $4, $5, $6, null);
    return 'completed';
exception when others then
    return sqlstate;
end $$
"""


@pytest.fixture(params=AUTHORITIES)
def attempts(store: Store, request: pytest.FixtureRequest) -> list[Attempt]:
    """Two open attempts, by each authority."""
    engine = store.engine()
    engine.sql(WRAPPER)
    attempts = engine.take(2)
    engine.under(request.param, *attempts)
    return attempts


def run(caller: Engine, statements: list[str], attempts: list[Attempt]) -> None:
    """Run the statements in a transaction and commit it."""
    bare, other = (CALL.format(**attempt.token) for attempt in attempts)
    names = {"bare": bare, "call": f"select {bare}", "other": f"select {other}"}
    with caller.open():
        for statement in statements:
            caller.sql(statement.format(**names, **attempts[0].token))


@pytest.mark.parametrize("form", [form for form in INSIDE if "swallows" not in form])
def test_inside_a_subtransaction_it_is_refused(store: Store, attempts: list[Attempt], form: str):
    """The refusal names the cause and takes the transaction down; the attempt stays open."""
    with pytest.raises(psycopg.Error) as refused:
        run(store.engine(), INSIDE[form], attempts)
    assert refused.value.sqlstate == "OC002"
    assert "begin_nested()" in refused.value.diag.message_hint
    assert store.engine().status(attempts[0]).state == "open"


def test_a_wrapper_that_swallows_the_error_completes_nothing(store: Store, attempts: list[Attempt]):
    """An exception block in somebody's function is a subtransaction: success inside it is impossible."""
    caller = store.engine()
    run(caller, INSIDE["a wrapper that swallows errors"], attempts)
    assert (
        caller.value(f"select app.wrapper({', '.join(map(str, attempts[0].token.values()))})")
        == "OC002"
    )
    assert caller.status(attempts[0]).state == "open"


@pytest.mark.parametrize("form", OUTSIDE)
def test_at_the_top_level_savepoints_around_it_do_no_harm(
    store: Store, attempts: list[Attempt], form: str
):
    """Only the call itself has to be outside."""
    run(store.engine(), OUTSIDE[form], attempts)
    assert store.engine().state(attempts[0].job_id) == "completed"


@pytest.mark.parametrize("ending", ["rollback to a", "release a"])
def test_a_refusal_inside_a_savepoint_can_be_survived_without_completing(
    store: Store, attempts: list[Attempt], ending: str
):
    """Rolling back to the savepoint leaves the attempt open for a proper call in the same transaction."""
    caller = store.engine().begin()
    caller.sql("savepoint a")
    with pytest.raises(psycopg.Error):
        caller.complete_job(attempts[0])
    caller.sql("rollback to a")
    if ending == "release a":
        caller.sql("release a")
        assert caller.complete_job(attempts[0]).outcome == "completed"
    caller.commit()
    assert caller.state(attempts[0].job_id) == ("completed" if ending == "release a" else "running")


def test_the_receipt_names_the_top_transaction(store: Store, attempts: list[Attempt]):
    """Its id answers by pg_xact_status whether the commit happened."""
    caller = store.engine().begin()
    receipt = caller.complete_job(attempts[0])
    assert receipt.transaction_id == caller.value("select pg_current_xact_id()::text::bigint")
    caller.commit()
    assert (
        caller.value("select pg_xact_status(%s::text::xid8)", str(receipt.transaction_id))
        == "committed"
    )
    caller.begin()
    lost = caller.complete_job(attempts[1])
    caller.rollback()
    assert (
        caller.value("select pg_xact_status(%s::text::xid8)", str(lost.transaction_id)) == "aborted"
    )
