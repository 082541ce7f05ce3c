"""The audit says who was logged in, whatever the caller calls itself and whichever role it took."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.attacks.intruders import JOBS, WORK, Target
from tests.engine import Engine
from tests.work_requests import accept, request
from tests.works import Runtime

pytestmark = pytest.mark.pg

EVERYTHING = (*JOBS, *WORK, "reader")
BY = {"p_actor": "somebody.else", "p_reason": "a look"}
ACTIONS: dict[str, Callable[[Engine], Any]] = {
    "pause_queue": lambda e: e.call("pause_queue", p_queue="q", **BY),
    "resume_queue": lambda e: e.call("resume_queue", p_queue="q", **BY),
    "cancel_jobs": lambda e: e.call("cancel_jobs", p_job_ids=[1], **BY),
    "retry_dead_jobs": lambda e: e.call("retry_dead_jobs", p_job_ids=[1], **BY),
    "purge_dead_jobs": lambda e: e.call("purge_dead_jobs", p_job_ids=[1], **BY),
    "disable_caller_owned": lambda e: e.call("disable_caller_owned", p_queue="q", **BY),
    "allow_caller_owned": lambda e: e.call("allow_caller_owned", p_queue="q", **BY),
    "purge_work": lambda e: e.call("purge_work", p_before=datetime.now(UTC) + timedelta(days=1), p_limit=1, **BY),
}  # fmt: skip
# What else has rows of an audit; each says the login by itself.
TABLES = ("operator_action", "runtime_epoch_history", "operator_command")


def posing(target: Target, role: str | None) -> tuple[Engine, str]:
    """A session that took one of its roles, and the login that it really is."""
    engine = target.engine(*EVERYTHING)
    login = engine.value("select session_user")
    if role is not None:
        engine.connection.execute(f'set role "{target.store.role(role)}"')
        assert engine.value("select current_user <> session_user")
    return engine, login


@pytest.fixture(scope="module")
def busy(target: Target) -> Target:
    """A queue to act on, and Work that can be purged."""
    worker = target.engine("producer", "executor")
    worker.complete(worker.take())
    runtime = Runtime(target.engine("work_runtime"), owner=7, epoch=target.epoch)
    for name in "abc":
        made = accept(
            target.engine("work_acceptor"), request(command_id=name, idempotency_key=name)
        )
        claimed = runtime.take(made)
        runtime.invoke(claimed)
        runtime.complete(claimed)
    return target


@pytest.mark.parametrize("taken", [None, "operator", "work_retention"])
@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_names_the_login(busy: Target, action: str, taken: str | None):
    """Beside the actor, whom the caller made up."""
    if taken is not None:
        taken = "work_retention" if action == "purge_work" else "operator"
    engine, login = posing(busy, taken)
    before = busy.value("select coalesce(max(action_id), 0) from onecommit.operator_action")
    ACTIONS[action](engine)
    rows = busy.admin.execute(
        "select action, actor, login from onecommit.operator_action where action_id > %s", (before,)
    ).fetchall()
    assert rows
    assert {row[1:] for row in rows} == {("somebody.else", login)}, rows


@pytest.mark.parametrize("taken", [None, "work_operator"])
def test_a_command_about_work_names_the_login(busy: Target, taken: str | None):
    engine, login = posing(busy, taken)
    command = f"look-{taken}"
    made = accept(
        busy.engine("work_acceptor"), request(command_id=command, idempotency_key=command)
    )
    named = {"p_scope_id": "tenant-1", "p_command_id": command, "p_work_id": made.work_id}
    assert engine.call("cancel_work", **named, **BY)[0].outcome == "canceled"
    [row] = busy.admin.execute(
        "select actor, login from onecommit.operator_command where command_id = %s", (command,)
    ).fetchall()
    assert row == ("somebody.else", login)


@pytest.mark.parametrize("taken", [None, "work_acceptor"])
def test_who_accepts_work_is_named_by_the_login(busy: Target, taken: str | None):
    """Nobody else is: an acceptance has no actor to be told."""
    engine, login = posing(busy, taken)
    scope = f"new-{taken}"
    accepted = accept(engine, request(scope=scope))
    history = "select actor from onecommit.work_history where work_id = %s"
    assert busy.admin.execute(history, (accepted.work_id,)).fetchall() == [(login,)]
    created = "select actor from onecommit.scope_history where scope_id = %s"
    assert busy.admin.execute(created, (scope,)).fetchall() == [(login,)]


@pytest.mark.parametrize("taken", [None, "operator"])
def test_a_rotation_names_the_login(busy: Target, taken: str | None):
    engine, login = posing(busy, taken)
    store_id = busy.value("select store_id::text from onecommit.store_status()")
    epoch = engine.epoch + 1
    engine.call(
        "rotate_epoch", p_store_id=store_id, p_expected=engine.epoch, p_candidate=epoch, **BY
    )
    [row] = busy.admin.execute(
        "select actor, login from onecommit.runtime_epoch_history where epoch = %s", (epoch,)
    ).fetchall()
    assert row == ("somebody.else", login)


@pytest.mark.parametrize("table", TABLES)
def test_no_login_writes_or_mends_the_audit(busy: Target, table: str):
    """Only what runs as its owner does, and says what it says."""
    engine, _ = posing(busy, None)
    for right in ("insert", "update", "delete", "truncate"):
        assert (
            engine.value("select has_table_privilege(%s, %s)", f"onecommit.{table}", right) is False
        )
    columns = "select bool_or(has_column_privilege(attrelid, attnum, 'update')) from pg_attribute where attrelid = %s::regclass and attnum > 0"
    assert engine.value(columns, f"onecommit.{table}") is False
