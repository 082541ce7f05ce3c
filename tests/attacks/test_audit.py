"""What is audited of Work says who was logged in, whatever the caller calls itself and whichever role it took."""

import pytest

from tests.attacks.intruders import JOBS, WORK, Target
from tests.engine import Engine
from tests.work_requests import accept, request

pytestmark = pytest.mark.pg

EVERYTHING = (*JOBS, *WORK, "reader")
BY = {"p_actor": "somebody.else", "p_reason": "a look"}
TABLES = ("operator_action", "runtime_epoch_history", "operator_command")


def posing(target: Target, role: str | None) -> tuple[Engine, str]:
    """A session that took one of its roles, and the login that it really is."""
    engine = target.engine(*EVERYTHING)
    login = engine.value("select session_user")
    if role is not None:
        engine.connection.execute(f'set role "{target.store.role(role)}"')
        assert engine.value("select current_user <> session_user")
    return engine, login


@pytest.mark.parametrize("taken", [None, "work_operator"])
def test_a_command_about_work_names_the_login(target: Target, taken: str | None):
    engine, login = posing(target, taken)
    command = f"look-{taken}"
    made = accept(
        target.engine("work_acceptor"), request(command_id=command, idempotency_key=command)
    )
    named = {"p_scope_id": "tenant-1", "p_command_id": command, "p_work_id": made.work_id}
    assert engine.call("cancel_work", **named, **BY)[0].outcome == "canceled"
    [row] = target.admin.execute(
        "select actor, login from onecommit.operator_command where command_id = %s", (command,)
    ).fetchall()
    assert row == ("somebody.else", login)


@pytest.mark.parametrize("taken", [None, "work_acceptor"])
def test_who_accepts_work_is_named_by_the_login(target: Target, taken: str | None):
    """Nobody else is: an acceptance has no actor to be told."""
    engine, login = posing(target, taken)
    scope = f"new-{taken}"
    accepted = accept(engine, request(scope=scope))
    history = "select actor from onecommit.work_history where work_id = %s"
    assert target.admin.execute(history, (accepted.work_id,)).fetchall() == [(login,)]
    created = "select actor from onecommit.scope_history where scope_id = %s"
    assert target.admin.execute(created, (scope,)).fetchall() == [(login,)]


@pytest.mark.parametrize("table", TABLES)
def test_no_login_writes_or_mends_the_audit(target: Target, table: str):
    """Only what runs as its owner does, and says what it says."""
    engine, _ = posing(target, None)
    for right in ("insert", "update", "delete", "truncate"):
        assert (
            engine.value("select has_table_privilege(%s, %s)", f"onecommit.{table}", right) is False
        )
    columns = "select bool_or(has_column_privilege(attrelid, attnum, 'update')) from pg_attribute where attrelid = %s::regclass and attnum > 0"
    assert engine.value(columns, f"onecommit.{table}") is False
