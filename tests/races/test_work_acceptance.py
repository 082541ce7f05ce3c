"""Races of acceptance: one Work for each identity whoever comes first, and the scope decides by the order of its lock."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from tests import observe
from tests.engine import Engine
from tests.logins import Logins, logins, shared_logins
from tests.logins import plain_store as shared_store
from tests.moving_clock import MovingClock
from tests.races.work_locks import answer_after_a_rotation
from tests.stores import Store
from tests.work_requests import accept, request
from tests.works import NOON

pytestmark = pytest.mark.pg

# The store belongs to a role without privileges, so that row-level security holds for its functions too.
__all__ = ["logins", "shared_logins", "shared_store"]


@pytest.fixture(autouse=True)
def acceptor(monkeypatch: pytest.MonkeyPatch, logins: Logins) -> None:
    """Every connection calls the functions as a login that may do nothing else."""
    monkeypatch.setattr(Engine, "acceptor", logins.role("work_acceptor"), raising=False)


CALLERS = 64
STRICT = pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
# The key under which disabling excludes everybody else from the scope.
EXCLUSIVE = """
select pg_advisory_xact_lock(onecommit.lock_class('onecommit.scope'), onecommit.scope_key('tenant-1'))
"""
DISABLE = "update onecommit.scope set state = 'disabled', disabled_at = now(), generation = generation + 1"
WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
IDENTITIES = {
    "the same request": lambda _: request(),
    "one command id": lambda n: request(idempotency_key=f"k{n}"),
    "one idempotency key": lambda n: request(command_id=f"c{n}"),
}


def wait_for_all(store: Store) -> None:
    """Until every caller is seen waiting."""
    deadline = time.monotonic() + observe.PATIENCE_SECONDS
    while store.observer.execute(WAITING).fetchone()[0] < CALLERS:
        assert time.monotonic() < deadline, "not every caller waited"


@pytest.mark.parametrize("rule", IDENTITIES)
def test_of_64_that_use_a_scope_for_the_first_time_one_makes_the_work(store: Store, rule: str):
    """They all start at once from the scope's lock, by either rule of identity."""
    gate = store.engine().begin()
    gate.sql(EXCLUSIVE)
    engines = [store.engine() for _ in range(CALLERS)]
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = [
            pool.submit(accept, engine, IDENTITIES[rule](n)) for n, engine in enumerate(engines)
        ]
        wait_for_all(store)
        gate.commit()
        rows = [answer.result(observe.PATIENCE_SECONDS) for answer in answers]
    assert sorted(row.outcome for row in rows) == ["accepted"] + ["duplicate"] * (CALLERS - 1)
    assert len({row[2:] for row in rows}) == 1
    for table in ("scope", "scope_history", "work", "work_payload", "dispatch", "work_history"):
        count = store.observer.execute(f"select count(*) from onecommit.{table}").fetchone()
        assert count == (1,), table


def test_of_two_uses_at_once_the_second_waits_and_gets_what_the_first_made(store: Store):
    first, second = store.engine().begin(), store.engine()
    made = accept(first)
    with store.blocked(second, accept, second, by=first) as answer:
        first.commit()
    assert (answer.result().outcome, answer.result().work_id) == ("duplicate", made.work_id)


def test_of_two_uses_at_once_the_second_makes_it_if_the_first_rolls_back(store: Store):
    first, second = store.engine().begin(), store.engine()
    accept(first)
    with store.blocked(second, accept, second, by=first) as answer:
        first.rollback()
    assert answer.result().outcome == "accepted"


@pytest.mark.parametrize(
    ("mine", "expected"),
    [
        ({"idempotency_key": "k2"}, "duplicate"),
        ({"command_id": "c2"}, "duplicate"),
        ({"payload": b""}, "ASDUR102"),
        ({"payload": b"", "idempotency_key": "k2"}, "ASDUR102"),
        ({"payload": b"", "command_id": "c2"}, "ASDUR102"),
    ],
)
def test_who_waited_for_the_row_is_judged_by_what_was_committed(
    store: Store, mine: dict, expected: str
):
    """The scope exists, so only the row's own identities meet."""
    accept(store.engine(), request(command_id="earlier", idempotency_key="earlier"))
    first, second = store.engine().begin(), store.engine().begin()
    accept(first)
    with store.blocked(second, accept, second, request(**mine), by=first) as answer:
        first.commit()
    row = answer.result()
    assert (row.code or row.outcome) == expected
    second.commit()


@pytest.mark.parametrize("repeated", [True, False])
def test_disabling_goes_first_if_it_has_the_lock_first(store: Store, repeated: bool):
    """The duplicate that waited for it finds a tombstone, and so does new Work."""
    accept(store.engine())
    asked = request() if repeated else request(command_id="c2", idempotency_key="k2")
    operator, caller = store.engine().begin(), store.engine()
    operator.sql(EXCLUSIVE)
    operator.sql(DISABLE)
    with store.blocked(caller, accept, caller, asked, by=operator) as answer:
        operator.commit()
    assert answer.result().code == "ASDUR107"


def test_disabling_waits_for_an_acceptance_that_has_the_lock_first(store: Store):
    caller, operator = store.engine().begin(), store.engine().begin()
    accept(caller)
    with store.blocked(operator, operator.sql, EXCLUSIVE, by=caller):
        caller.commit()
    operator.rollback()


def test_an_acceptance_that_waited_for_a_rotation_is_fenced(store: Store):
    """The epoch is read under the schema's lock; the caller's transaction goes on."""
    caller = store.engine().begin()
    answer = answer_after_a_rotation(store, caller, lambda: accept(caller))
    assert answer.code == "ASDUR108"
    caller.sql("insert into app.invoice values (1)")
    caller.commit()
    assert store.observer.execute("select count(*) from onecommit.work").fetchone() == (0,)
    assert store.observer.execute("select count(*) from app.invoice").fetchone() == (1,)


@pytest.fixture
def clock(store: Store) -> Iterator[MovingClock]:
    """It runs again afterwards."""
    clock = MovingClock(store)
    yield clock
    clock.run()


@pytest.mark.parametrize(
    ("hours", "expected"), [(2, "ASDUR121"), (3, "accepted")], ids=["closed", "open"]
)
def test_the_acceptance_is_at_the_time_under_the_lock(
    store: Store, clock: MovingClock, hours: int, expected: str
):
    """A caller that waited has so much less time: neither the begin of its transaction counts nor that of the call."""
    gate, caller = store.engine().begin(), store.engine().begin()
    gate.sql(EXCLUSIVE)
    asked = request(deadline=NOON + timedelta(hours=hours))
    with store.blocked(caller, accept, caller, asked, by=gate) as answer:
        clock.pass_(timedelta(hours=2))
        gate.commit()
    clock.pass_(timedelta(hours=1))
    caller.commit()
    row = answer.result()
    assert (row.code or row.outcome) == expected
    if expected == "accepted":
        assert row.accepted_at == NOON + timedelta(hours=2)


@STRICT
def test_an_old_snapshot_of_a_disabled_scope_is_a_serialization_failure(
    store: Store, isolation: str
):
    """Its reader would see the scope active and write into a tombstone."""
    accept(store.engine())
    caller = store.engine().begin(isolation)
    caller.sql("select from app.invoice")
    store.engine().sql(DISABLE)
    assert_serialization_failure(caller, request(command_id="c2", idempotency_key="k2"))


@STRICT
@pytest.mark.parametrize("earlier", [True, False])
def test_an_old_snapshot_of_the_identities_is_a_serialization_failure(
    store: Store, isolation: str, earlier: bool
):
    """Of a scope that was used before the snapshot, and of one that was not."""
    if earlier:
        accept(store.engine(), request(command_id="earlier", idempotency_key="earlier"))
    caller = store.engine().begin(isolation)
    caller.sql("select from app.invoice")
    accept(store.engine())
    assert_serialization_failure(caller, request())


@STRICT
def test_a_strict_transaction_accepts_what_nobody_else_touches(store: Store, isolation: str):
    with store.engine().open(isolation) as caller:
        made = accept(caller)
        assert accept(caller)[2:] == made[2:]


def assert_serialization_failure(caller: Engine, asked) -> None:
    with pytest.raises(psycopg.errors.SerializationFailure):
        accept(caller, asked)
    caller.rollback()
