"""A token opens exactly its own attempt of its own store, and a refusal leaves nothing of the caller's behind."""

from collections.abc import Iterator

import psycopg
import pytest

from onecommit import schema

from tests.clusters import Cluster
from tests.engine import Attempt, Engine
from tests.stores import EPOCH, Store

pytestmark = pytest.mark.pg

NUMERIC_OUT_OF_RANGE = "22003"
UNDEFINED_FUNCTION = "42883"
# Of an idle transaction: its snapshot, if it keeps one, and its id. Vacuum removes nothing newer than either.
HORIZON = """
select array_remove(array[case when backend_xmin is not null then 'xmin' end, case when backend_xid is not null then 'xid' end], null)
from pg_stat_activity where pid = %s
"""


@pytest.fixture
def attempt(engine: Engine) -> Attempt:
    return engine.take(3)[1]


@pytest.fixture
def twin(postgres: Cluster) -> Iterator[Engine]:
    """Another store in which the same things happened, so that all numbers but the random one agree."""
    with (
        postgres.database(template=postgres.template) as database,
        database.connect() as connection,
    ):
        yield Engine(connection, epoch=connection.execute(EPOCH).fetchone()[0])


def refused(engine: Engine, statement: str, *values) -> str:
    """The SQLSTATE; the caller's row goes down with the transaction, whatever it sends as the end."""
    engine.begin()
    engine.sql("insert into app.invoice values (1)")
    with pytest.raises(psycopg.Error) as caught:
        engine.sql(statement, *values)
    engine.commit()
    assert engine.sql("select from app.invoice") == []
    return caught.value.sqlstate


COMPLETE = "select {}.complete_job(%s, %s, %s, %s, %s, %s, null)"


def test_a_token_of_another_store_names_nothing(store: Store, twin: Engine):
    """Two stores count alike; the receipt id is drawn at random."""
    theirs = twin.take(3)[1]
    twin.worker = None
    engine = store.engine()
    for name in ("job_number", "batch_number", "worker_number"):
        value = twin.value(f"select last_value from onecommit.{name}")
        engine.value(f"select setval('onecommit.{name}', %s)", value)
    restart = "select setval('onecommit.{}', 1, false)"
    for name in ("job_number", "batch_number"):
        engine.value(restart.format(name))
    ours = engine.take(3)[1]
    differing = {field for field in ours.token if ours.token[field] != theirs.token[field]}
    assert differing == {"receipt_id"}
    assert refused(engine, COMPLETE.format("onecommit"), *theirs.token.values()) == "OC001"
    twin.begin()
    twin.complete_job(theirs)  # the lock of the other database has the same numbers
    assert engine.status(ours).state == "open"
    twin.rollback()


def test_a_token_of_another_schema_names_nothing(store: Store, engine: Engine, attempt: Attempt):
    """A second store in the same database is a stranger as well, and has locks of its own."""
    dsn = store.database.dsn
    schema.apply(dsn, schema="other")
    schema.initialize_epoch(dsn, schema="other", actor="tests", reason="a second store")
    holder = store.engine().begin()
    holder.complete_job(attempt)  # its attempt lock does not stop the other store
    assert refused(engine, COMPLETE.format("other"), *attempt.token.values()) == "OC001"
    holder.rollback()
    assert engine.status(attempt).state == "open"
    store.observer.execute("drop schema other cascade")


@pytest.mark.parametrize("field", ["claim_slot", "batch_index"])
@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63])
def test_an_index_beyond_its_type_is_refused_by_its_type(
    engine: Engine, attempt: Attempt, field: str, value: int
):
    """Before anything is looked up."""
    token = attempt.token | {field: value}
    call = (
        "select onecommit.complete_job(%s::bigint, %s::bigint, %s::numeric::integer, %s::bigint,"
        " %s::bigint, %s::numeric::integer, null)"
    )
    assert refused(engine, call, *token.values()) == NUMERIC_OUT_OF_RANGE
    assert engine.status(attempt).state == "open"


@pytest.mark.parametrize("missing", range(6))
def test_a_truncated_token_calls_no_function(engine: Engine, attempt: Attempt, missing: int):
    """No overload and no default fills the gap."""
    fields = list(attempt.token.items())
    del fields[missing]
    call = ", ".join(f"{name} => {value}" for name, value in fields)
    statement = f"select onecommit.complete_job({call}, progress => null)"
    assert refused(engine, statement) == UNDEFINED_FUNCTION


def test_a_replayed_token_is_stale_in_the_same_and_in_a_later_transaction(
    engine: Engine, attempt: Attempt
):
    """Completing twice takes the first completion of the same transaction down too."""
    engine.begin()
    engine.complete_job(attempt)
    with pytest.raises(psycopg.Error) as caught:
        engine.complete_job(attempt)
    assert caught.value.sqlstate == "OC001"
    engine.commit()
    assert engine.status(attempt).state == "open"
    engine.complete_job(attempt)
    assert refused(engine, COMPLETE.format("onecommit"), *attempt.token.values()) == "OC001"


def test_the_token_of_the_last_attempt_does_not_complete_the_next(engine: Engine):
    """Not even while the next one runs."""
    [first] = engine.take()
    engine.finish([first], "retried")
    engine.promote()
    [second] = engine.claim().attempts
    assert refused(engine, COMPLETE.format("onecommit"), *first.token.values()) == "OC001"
    mixed = second.token | {"run_lease": first.run_lease}
    assert refused(engine, COMPLETE.format("onecommit"), *mixed.values()) == "OC001"
    assert engine.status(second).state == "open"


@pytest.mark.parametrize(
    ("isolation", "pinned", "sqlstate", "advice"),
    [
        ("read committed", ["xid"], "OC005", "only for the final writes"),
        ("repeatable read", ["xmin", "xid"], "OC001", "took its snapshot before the claim"),
        ("serializable", ["xmin", "xid"], "OC001", "took its snapshot before the claim"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_transaction_held_across_the_handler_pins_the_horizon_and_is_rejected(
    store: Store, engine: Engine, isolation: str, pinned: list[str], sqlstate: str, advice: str
):
    """Vacuum could remove nothing that died since. Under a snapshot the claim is not even there."""
    holder = store.engine().begin(isolation)
    holder.sql("insert into app.invoice values (1)")
    [attempt] = engine.take()
    assert store.observer.execute(HORIZON, (holder.pid,)).fetchone()[0] == pinned
    with pytest.raises(psycopg.Error) as caught:
        holder.complete_job(attempt)
    assert caught.value.sqlstate == sqlstate
    assert advice in caught.value.diag.message_hint
    holder.rollback()
    assert store.observer.execute(HORIZON, (holder.pid,)).fetchone()[0] == []
    assert engine.status(attempt).state == "open"


def test_a_short_transaction_pins_the_horizon_for_its_own_time_only(store: Store, engine: Engine):
    """Before it and after it, nothing of the application holds vacuum back."""
    [attempt] = engine.take()
    caller = store.engine()
    seen = [store.observer.execute(HORIZON, (caller.pid,)).fetchone()[0]]
    caller.begin()
    caller.sql("insert into app.invoice values (1)")
    caller.complete_job(attempt)
    seen.append(store.observer.execute(HORIZON, (caller.pid,)).fetchone()[0])
    caller.commit()
    seen.append(store.observer.execute(HORIZON, (caller.pid,)).fetchone()[0])
    before, during, after = seen
    assert during
    assert before == after == []
    assert engine.state(attempt.job_id) == "completed"
