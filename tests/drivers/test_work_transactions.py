"""The caller's transaction around an acceptance: usable after every outcome, taken down by every error of PostgreSQL."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from onecommit import App
from onecommit.app.work import Work
from onecommit.domain.work import Accepted, Safety
from onecommit.domain.work_policy import WorkPlan
from onecommit.errors import InvalidWork, ScopeDisabled

from tests.drivers.callers import PythonCaller
from tests.drivers.conftest import Application, add_entry, write
from tests.engine import Engine

pytestmark = pytest.mark.pg

LOCK_SCOPE = """
select pg_advisory_xact_lock(onecommit.lock_class('onecommit.scope'), onecommit.scope_key('{}'))
"""


@pytest.fixture
def charge(application: Application) -> Work[dict, str]:
    return application.app.work(
        "billing.charge", version="1", payload=dict, result=str, safety=Safety.IDEMPOTENT
    )


def identities(**changes: Any) -> dict[str, Any]:
    name = uuid4().hex
    return {"scope": name, "command_id": name, "idempotency_key": name} | changes


async def accept(caller: PythonCaller, work: Work, payload: Any, **arguments: Any) -> Any:
    answer = work.in_tx(caller.connection).accept(payload, **arguments)
    return await answer if caller.is_async else answer


def stored(application: Application, scope: str) -> int:
    with application.database.connect() as connection:
        row = connection.execute(
            "select count(*) from onecommit.work where scope_id = %s", (scope,)
        ).fetchone()
        return row[0]


REFUSED: list[tuple[Any, dict[str, Any]]] = [
    ({"cents": float("nan")}, {}),
    ({"cents": object()}, {}),
    ({"note": "x" * 262_144}, {}),
    ({}, {"scope": "a b"}),
    ({}, {"command_id": ""}),
    ({}, {"idempotency_key": "x" * 201}),
    ({}, {"deadline": timedelta(hours=1)}),
    ({}, {"due_at": datetime(2030, 1, 1)}),  # noqa: DTZ001  refused for that
    (
        {},
        {
            "plan": WorkPlan(offsets=(timedelta(0),), circuit=timedelta(1)),
            "due_at": datetime(2100, 1, 1, tzinfo=UTC),
        },
    ),
]


async def test_what_is_refused_before_sql_leaves_the_transaction_usable(
    python_caller, application, charge
):
    """Payload, identities, times, policy."""
    entry = await write(python_caller)
    for payload, wrong in REFUSED:
        with pytest.raises(InvalidWork):
            await accept(python_caller, charge, payload, **identities(**wrong))
    arguments = identities()
    assert isinstance(await accept(python_caller, charge, {}, **arguments), Accepted)
    after = await add_entry(python_caller)
    await python_caller.commit()
    assert {entry, after} <= application.entries()
    assert stored(application, arguments["scope"]) == 1


async def test_a_disabled_scope_leaves_the_transaction_usable(python_caller, application, charge):
    """The tombstone is an answer, not an error of the database."""
    arguments = identities()
    await charge.accept({}, **arguments)
    with application.database.connect() as connection:
        engine = Engine(connection, epoch=application.store.epoch)
        [row] = engine.call(
            "disable_scope",
            p_scope_id=arguments["scope"],
            p_command_id="off",
            p_generation=1,
            p_actor="ada",
            p_reason="gone",
        )
        assert row.outcome == "disabled"
    entry = await write(python_caller)
    for again in (arguments, identities(scope=arguments["scope"])):
        with pytest.raises(ScopeDisabled, match="ASDUR107"):
            await accept(python_caller, charge, {}, **again)
    after = await add_entry(python_caller)
    await python_caller.commit()
    assert {entry, after} <= application.entries()


@pytest.mark.parametrize("limit", ["lock_timeout", "statement_timeout"])
async def test_an_error_of_postgresql_takes_the_transaction_down(
    python_caller, application, charge, limit
):
    """A lock that is not had in time, a statement that is cancelled: nothing is committed, whatever is caught."""
    arguments = identities()
    with application.database.connect() as operator:
        operator.execute("begin")
        operator.execute(LOCK_SCOPE.format(arguments["scope"]))
        entry = await write(python_caller)
        await python_caller.execute(f"set local {limit} = '50ms'")
        with pytest.raises(Exception) as failed:  # noqa: PT011  each driver has its own error
            await accept(python_caller, charge, {}, **arguments)
        assert limit.replace("_", " ") in str(failed.value)
        with pytest.raises(Exception):  # noqa: B017, PT011  each driver has its own error
            await add_entry(python_caller)
        operator.execute("rollback")
    with suppress(Exception):  # some drivers tell that the transaction had failed
        await python_caller.commit()
    assert entry not in application.entries()
    assert stored(application, arguments["scope"]) == 0


async def test_a_lost_connection_takes_the_transaction_down(python_caller, application, charge):
    """The server ends it; no other connection takes its place."""
    arguments = identities()
    entry = await write(python_caller)
    with application.database.connect() as operator:
        operator.execute("select pg_terminate_backend(%s, 5000)", (application.only_writer(),))
    with pytest.raises(Exception):  # noqa: B017, PT011  each driver has its own error
        await accept(python_caller, charge, {}, **arguments)
    with suppress(Exception):
        await python_caller.commit()
    assert entry not in application.entries()
    assert stored(application, arguments["scope"]) == 0


async def test_an_acceptance_uses_the_callers_connection_and_no_other(python_caller, application):
    """An App that could not connect accepts; it neither commits nor ends what the caller began."""
    elsewhere = App(
        "host=192.0.2.1", store_id=application.store.store_id, epoch=application.store.epoch
    )
    charge = elsewhere.work(
        "billing.charge", version="1", payload=dict, result=str, safety=Safety.IDEMPOTENT
    )
    arguments = identities()
    entry, connection = await write(python_caller), python_caller.connection
    assert isinstance(await accept(python_caller, charge, {}, **arguments), Accepted)
    assert stored(application, arguments["scope"]) == 0
    assert entry not in application.entries()
    assert python_caller.connection is connection
    await python_caller.commit()
    assert stored(application, arguments["scope"]) == 1
    assert entry in application.entries()
