"""Accepting Work: once for each identity in a scope, in the caller's transaction, and never an error for an outcome."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkPlan, WorkRetry

from tests.engine import Engine
from tests.logins import Logins
from tests.stores import Store
from tests.work_requests import REQUEST, accept, request, store_of

pytestmark = pytest.mark.pg

SECOND = timedelta(seconds=1)
CLOCK = "create or replace function onecommit.store_now() returns timestamptz language sql volatile parallel safe as"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

# The row(s) that two earlier requests made: (command id, idempotency key) of each; then what is asked, with the same
# content or another one; then what comes back, and of which earlier request. From the normative text's table.
ONE, TWO = [("c1", "k1")], [("c1", "k1"), ("c2", "k2")]
MATRIX = [
    ([], "c1", "k1", "same", "accepted", None),
    (TWO, "c3", "k3", "same", "accepted", None),
    (TWO, "c3", "k3", "other", "accepted", None),
    (ONE, "c1", "k1", "same", "duplicate", 0),
    (ONE, "c1", "k9", "same", "duplicate", 0),
    (ONE, "c9", "k1", "same", "duplicate", 0),
    (ONE, "c1", "k1", "other", "ASDUR102", None),
    (ONE, "c1", "k9", "other", "ASDUR102", None),
    (ONE, "c9", "k1", "other", "ASDUR102", None),
    (TWO, "c1", "k2", "same", "ASDUR102", None),
    (TWO, "c2", "k1", "same", "ASDUR102", None),
    (TWO, "c1", "k2", "other", "ASDUR102", None),
]


@pytest.fixture
def engine(store: Store, logins: Logins) -> Engine:
    """It accepts as a login that may do nothing else, and looks at the tables as the superuser."""
    engine = store.engine()
    engine.acceptor = logins.role("work_acceptor")
    return engine


@pytest.fixture(autouse=True)
def clock(store: Store):
    """The true one again afterwards."""
    yield
    store.observer.execute(f"{CLOCK} $$ select clock_timestamp() $$")


def stop_clock(engine: Engine, at: datetime) -> None:
    engine.sql(f"{CLOCK} $$ select timestamptz '{at.isoformat()}' $$")


def counts(engine: Engine) -> tuple[int, ...]:
    """Rows of scope, Work, payload, dispatch and history."""
    tables = ("scope", "work", "work_payload", "dispatch", "work_history")
    return tuple(engine.value(f"select count(*) from onecommit.{table}") for table in tables)


def refusal(engine: Engine, **raw) -> str:
    """The field that the refused call names."""
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        accept(engine, **raw)
    assert counts(engine) == (0, 0, 0, 0, 0)
    return caught.value.diag.message_primary.partition(":")[0]


@pytest.mark.parametrize(("earlier", "command", "key", "content", "expected", "original"), MATRIX)
def test_every_cell_of_the_identity_matrix(
    engine: Engine, earlier, command, key, content, expected, original
):
    """The outcome is the table's; what is no acceptance changes nothing, and the transaction goes on and commits."""
    made = [accept(engine, request(command_id=c, idempotency_key=k)) for c, k in earlier]
    before = counts(engine)
    payload = REQUEST.payload if content == "same" else b"{}"
    with engine.open():
        row = accept(engine, request(command_id=command, idempotency_key=key, payload=payload))
        engine.sql("insert into app.invoice values (1)")
    assert (row.code or row.outcome) == expected
    assert engine.value("select count(*) from app.invoice") == 1
    if expected == "accepted":
        assert counts(engine) == (1, *(count + 1 for count in before[1:]))
    else:
        assert counts(engine) == before
    if original is not None:
        assert row[2:] == made[original][2:]


@pytest.mark.parametrize(
    "change",
    [
        {"contract_name": "billing.refund"},
        {"contract_version": "2"},
        {"codec": "cbor"},
        {"classification": "personal"},
        {"retention_id": "years-7"},
        {"safety": Safety.IDEMPOTENT},
        {"retry": WorkRetry(max_attempts=9)},
        {"retry": WorkRetry(renewal=31 * SECOND)},
        {"due_at": NOON + timedelta(days=9)},
        {"deadline": NOON + timedelta(days=9)},
        {"plan": WorkPlan(offsets=(0 * SECOND, SECOND), circuit=2 * SECOND)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_request_that_differs_in_one_field_is_another_one(engine: Engine, change):
    accept(engine)
    row = accept(engine, request(**change))
    assert (row.outcome, row.code, row.work_id) == ("refused", "ASDUR102", None)


def test_the_priority_is_no_part_of_the_identity(engine: Engine):
    accept(engine)
    assert accept(engine, request(priority=5)).outcome == "duplicate"


def test_identities_belong_to_their_scope(engine: Engine):
    first = accept(engine)
    assert accept(engine, request(scope="tenant-2")).outcome == "accepted"
    assert accept(engine).work_id == first.work_id


def test_a_repeated_request_with_a_policy_is_a_duplicate_after_its_deadline(engine: Engine):
    """An absolute time is part of the request; a repeat after it gets the original, not a refusal."""
    stop_clock(engine, NOON)
    asked = request(deadline=NOON + SECOND)
    first = accept(engine, asked)
    stop_clock(engine, NOON + timedelta(days=1))
    assert accept(engine, asked)[2:] == first[2:]


def test_acceptance_writes_what_was_asked_and_nothing_is_due_before_its_time(engine: Engine):
    stop_clock(engine, NOON)
    asked = request(due_at=NOON + SECOND, deadline=NOON + 9 * SECOND, priority=-7)
    row = accept(engine, asked)
    [work] = engine.sql("select * from onecommit.work")
    assert (work.state, work.revision, work.attempt) == ("pending", 1, 0)
    assert work.accepted_at == row.accepted_at == NOON
    assert (work.eligible_at, work.deadline) == (NOON + SECOND, NOON + 9 * SECOND)
    assert (work.fingerprint_schema, work.scope_generation) == (2, 1)
    [dispatch] = engine.sql("select * from onecommit.dispatch")
    assert (dispatch.due_at, dispatch.discover_at) == (NOON + SECOND, NOON + SECOND)
    assert (dispatch.expected_revision, dispatch.priority) == (1, -7)
    [event] = engine.sql("select * from onecommit.work_history")
    assert (event.event, event.from_state, event.to_state) == ("accepted", None, "pending")
    assert (event.revision, event.command_id) == (1, "c1")
    assert engine.value("select payload from onecommit.work_payload") == REQUEST.payload


def test_work_that_can_never_begin_is_discovered_at_its_cutoff(engine: Engine):
    """Else nobody would look at it and say that it failed."""
    stop_clock(engine, NOON)
    retry = WorkRetry(max_elapsed=2 * SECOND)
    accept(engine, request(due_at=NOON + 5 * SECOND, deadline=NOON + 9 * SECOND, retry=retry))
    assert engine.value("select discover_at from onecommit.dispatch") == NOON + 2 * SECOND


@pytest.mark.parametrize(("microseconds", "code"), [(-1, "ASDUR121"), (0, "ASDUR121"), (1, None)])
def test_a_deadline_that_has_come_is_refused_and_equality_is_closed(
    engine: Engine, microseconds, code
):
    stop_clock(engine, NOON)
    row = accept(engine, request(deadline=NOON + timedelta(microseconds=microseconds)))
    assert row.code == code
    # What is refused leaves nothing, not even the scope that it would have been the first in.
    assert engine.value("select count(*) from onecommit.scope") == (0 if code else 1)


def test_first_use_creates_the_scope_with_the_transaction(engine: Engine):
    with engine.open():
        accept(engine)
        engine.rollback()
    assert counts(engine) == (0, 0, 0, 0, 0)
    accept(engine)
    assert engine.sql("select scope_id, generation, event from onecommit.scope_history") == [
        ("tenant-1", 1, "created")
    ]


def test_a_disabled_scope_answers_before_identities_are_looked_up(engine: Engine):
    """A tombstone: neither a duplicate nor a conflict is told any more."""
    accept(engine)
    engine.sql("update onecommit.scope set state = 'disabled', disabled_at = now(), generation = 2")
    for asked in (REQUEST, request(payload=b""), request(command_id="c2", idempotency_key="k2")):
        with engine.open():
            assert accept(engine, asked).code == "ASDUR107"
    assert engine.value("select state from onecommit.scope") == "disabled"


def test_a_wrong_store_goes_before_a_wrong_epoch(engine: Engine):
    with engine.open():
        assert accept(engine, p_epoch=engine.epoch + 1).code == "ASDUR108"
        assert accept(engine, p_epoch=None).code == "ASDUR108"
        assert accept(engine, p_store_id=str(uuid4())).code == "ASDUR115"
        assert accept(engine, p_store_id=str(uuid4()), p_epoch=0).code == "ASDUR115"
    assert counts(engine) == (0, 0, 0, 0, 0)


def test_no_context_is_left_in_the_callers_transaction(engine: Engine):
    accept(engine)
    with engine.open():
        for raw in ({}, {"p_epoch": 0}, {"p_command_id": "c2"}, {"p_payload": b"x"}):
            accept(engine, **raw)
            assert not engine.value("select current_setting('onecommit.scope_id', true)")


def test_inside_a_savepoint_only_what_changes_nothing_is_answered(engine: Engine):
    accept(engine)
    with engine.open():
        engine.sql("savepoint s")
        assert accept(engine).outcome == "duplicate"
        assert accept(engine, request(payload=b"")).code == "ASDUR102"
        with pytest.raises(psycopg.Error) as caught:
            accept(engine, request(command_id="c2", idempotency_key="k2"))
        assert caught.value.sqlstate == "OC002"
        engine.rollback()


def test_a_released_savepoint_is_no_savepoint_any_more(engine: Engine):
    with engine.open():
        engine.sql("savepoint s")
        engine.sql("insert into app.invoice values (1)")
        engine.sql("release s")
        assert accept(engine).outcome == "accepted"


def test_typed_exits_need_every_live_worker_of_the_contract(engine: Engine, store: Store):
    """One that does not know them could claim the Work; a duplicate is answered all the same."""
    asked = request(exit_aware=True)
    register = "select onecommit.register_worker('w', %s::jsonb, %s)"
    able = '{"work": ["billing.charge/1"], "capabilities": ["work_exit_v1"]}'
    unable = '{"work": ["a/1", "billing.charge/1"]}'
    foreign = '{"work": ["billing.charge/2"]}'
    engine.sql(register, able, engine.epoch)
    engine.sql(register, foreign, engine.epoch)
    assert accept(engine, asked).outcome == "accepted"
    old = engine.value(register, unable, engine.epoch)
    with engine.open():
        assert accept(engine, asked).outcome == "duplicate"
        later = request(exit_aware=True, command_id="c2", idempotency_key="k2")
        assert accept(engine, later).code == "ASDUR119"
        assert accept(engine, request(command_id="c3", idempotency_key="k3")).outcome == "accepted"
    engine.call("retire_worker", p_worker=old)
    assert accept(engine, later).outcome == "accepted"


@pytest.mark.parametrize(
    "field",
    [
        "scope_id",
        "command_id",
        "idempotency_key",
        "contract_name",
        "codec",
        "classification",
        "retention_id",
    ],
)
@pytest.mark.parametrize("value", [None, "", "x" * 201, "a b", "a\n", "ä", "a\\"])
def test_an_identifier_out_of_bounds_is_named(engine: Engine, field, value):
    assert refusal(engine, **{f"p_{field}": value}) == field


OUT_OF_BOUNDS = {
    "contract_version": [None, "", "x" * 101],
    "exit_aware": [None],
    "payload": [None, b"x" * 262_145],
    "safety": [None, "unsafe"],
    "retry_algorithm": [None, "linear-v1"],
    "max_attempts": [None, 0, 1001],
    "max_elapsed_us": [None, 0, -1, 2**62],
    "initial_delay_us": [None, 0],
    "max_delay_us": [None, 999_999, 2**62],
    "lease_us": [None, 0],
    "renewal_us": [None, 120_000_000],
    "max_lease_us": [None, 119_999_999],
    "priority": [None, -101, 101],
    "store_id": [None],
    "due_at": [
        "infinity",
        "-infinity",
        "1969-12-31T23:59:59.999999Z",
        "9999-01-01T00:00:00.000001Z",
    ],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in OUT_OF_BOUNDS.items() for value in values],
)
def test_an_argument_out_of_bounds_is_named(engine: Engine, field, value):
    assert refusal(engine, **{f"p_{field}": value}) == field


@pytest.mark.parametrize("safety", [s for s in Safety if s is not Safety.PROVIDER_KEYED])
def test_typed_exits_are_for_provider_keyed_work(engine: Engine, safety: Safety):
    assert refusal(engine, p_exit_aware=True, p_safety=safety.value) == "exit_aware"


PLANS = [
    ("plan_version", {"p_plan_version": 2, "p_deadline": "2100-01-01Z"}),
    ("plan_version", {"p_plan_version": 1}),
    ("plan_version", {"p_deadline": "2100-01-01Z"}),
    ("plan_version", {"p_offsets_us": [0], "p_circuit_us": 9}),
    ("circuit_us", {"p_plan_version": 1, "p_offsets_us": [0]}),
    ("circuit_us", {"p_plan_version": 1, "p_deadline": "2100-01-01Z", "p_circuit_us": 9}),
    ("deadline", {"p_plan_version": 1, "p_deadline": "infinity"}),
    ("deadline", {"p_plan_version": 1, "p_deadline": "9999-01-01T00:00:00.000001Z"}),
    ("due_at", {"p_plan_version": 1, "p_deadline": "2100-01-01Z", "p_due_at": "2100-01-01Z"}),
    ("due_at", {"p_offsets_us": [0], "p_due_at": "2100-01-01Z"}),
    ("offsets_us", {"p_offsets_us": []}),
    ("offsets_us", {"p_offsets_us": [1], "p_max_attempts": 1}),
    ("offsets_us", {"p_offsets_us": [0, 5, 5]}),
    ("offsets_us", {"p_offsets_us": [0, 5, 4]}),
    ("offsets_us", {"p_offsets_us": [0, None]}),
    ("offsets_us", {"p_offsets_us": [[0, 1]]}),
    ("offsets_us", {"p_offsets_us": list(range(257)), "p_circuit_us": 300}),
    ("circuit_us", {"p_offsets_us": [0, 5], "p_circuit_us": 5}),
    ("circuit_us", {"p_offsets_us": [0, 5], "p_circuit_us": 2**62}),
    ("max_attempts", {"p_offsets_us": [0, 5], "p_max_attempts": 3}),
    ("max_elapsed_us", {"p_offsets_us": [0], "p_max_attempts": 1, "p_max_elapsed_us": 8}),
]


@pytest.mark.parametrize(("field", "raw"), PLANS)
def test_a_policy_out_of_bounds_names_the_field(engine: Engine, field, raw):
    if "p_offsets_us" in raw and "p_plan_version" not in raw and field != "plan_version":
        raw = {"p_plan_version": 1, "p_circuit_us": 9} | raw
    assert refusal(engine, **raw) == field


def test_bounds_are_part_of_what_is_allowed(engine: Engine):
    plan = WorkPlan(offsets=tuple(i * SECOND for i in range(256)), circuit=256 * SECOND)
    asked = request(scope="x" * 200, contract_version="v" * 100, payload=b"x" * 262_144, plan=plan)
    assert accept(engine, asked).outcome == "accepted"


def test_a_sleeping_worker_is_told_of_due_work_and_nobody_else(engine: Engine, store: Store):
    listener = store.engine()
    listener.sql("listen onecommit")
    accept(engine, request(command_id="quiet", idempotency_key="quiet"))
    engine.call("mark_work_sleeper", p_sleep=True)
    later = datetime.now(UTC) + timedelta(days=1)
    accept(engine, request(command_id="later", idempotency_key="later", due_at=later))
    accept(engine)
    accept(engine)
    engine.call("mark_work_sleeper", p_sleep=False)
    accept(engine, request(command_id="awake", idempotency_key="awake"))
    notices = [notice.payload for notice in listener.connection.notifies(timeout=0.2)]
    assert notices == ["w"]
    assert store_of(engine)
