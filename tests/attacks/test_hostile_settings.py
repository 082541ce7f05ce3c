"""Settings that every caller may choose change no answer of an operation that runs as its owner."""

import json
import re

import psycopg
import pytest
from psycopg import sql
from psycopg.types.string import TextLoader

from onecommit.doctor.bodies import without_comments

from tests.attacks import lifecycle
from tests.attacks.intruders import Target
from tests.attacks.test_shadowing import EVERYTHING
from tests.engine import Engine
from tests.work_requests import arguments, request
from tests.works import Runtime

pytestmark = pytest.mark.pg

# What is written as one thing and read as another, and what is printed or planned otherwise.
SETTINGS = {
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "backslash_quote": "on",
    "transform_null_equals": "on",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "America/New_York",
    "timezone_abbreviations": "India",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "quote_all_identifiers": "on",
    "plan_cache_mode": "force_generic_plan",
    "enable_partition_pruning": "off",
    "enable_indexscan": "off",
    "enable_bitmapscan": "off",
    "join_collapse_limit": "1",
    "from_collapse_limit": "1",
    "work_mem": "64kB",
    "xmloption": "document",
    "default_tablespace": "pg_default",
    "check_function_bodies": "off",
    "default_transaction_isolation": "read committed",
}
# Only for those whom the server trusts with it.
FORBIDDEN = (
    "session_replication_role",
    "plpgsql.variable_conflict",
    "lc_messages",
    "allow_in_place_tablespaces",
)


def set_up(target: Target) -> Engine:
    """A login with every capability and all of these settings, before it calls anything."""
    engine = target.engine(*EVERYTHING)
    for name, value in SETTINGS.items():
        engine.connection.execute(
            sql.SQL("set {} = {}").format(sql.Identifier(*name.split(".")), value)
        )
    engine.connection.adapters.register_loader("timestamptz", TextLoader)
    engine.connection.adapters.register_loader("interval", TextLoader)
    return engine


def test_every_operation_answers_as_ever(target: Target):
    """From the first enqueue to the rotation of the epoch."""
    engine = set_up(target)
    lifecycle.jobs(engine, target)
    lifecycle.work(
        engine, Runtime(target.engine("work_runtime"), owner=7, epoch=engine.epoch), target
    )
    lifecycle.epochs(engine, target)


def test_a_fingerprint_is_the_same_under_all_of_them(target: Target):
    """Bytes that are written as text must not be read as letters: an honest repetition would be a conflict."""
    engine, honest = set_up(target), target.engine("work_acceptor")
    asked = request(scope="fingerprint", command_id="f", idempotency_key="f")
    sent = arguments(
        asked,
        store_id=str(target.value("select store_id from onecommit.store_status()")),
        epoch=engine.epoch,
    )
    assert engine.call("accept_work", **sent)[0].outcome == "accepted"
    assert honest.call("accept_work", **sent)[0].outcome == "duplicate"


@pytest.mark.parametrize("actor", ["", " ", "\t\n"])
def test_an_audit_row_needs_a_name_under_all_of_them(target: Target, actor: str):
    """And what has letters is a name, whichever they are."""
    engine = set_up(target)
    engine.enqueue_one(queue="audited")
    before = target.everything()
    for wanted in ({"p_actor": actor, "p_reason": "r"}, {"p_actor": "a", "p_reason": actor}):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            engine.call("pause_queue", p_queue="audited", **wanted)
    assert target.everything() == before
    engine.call("pause_queue", p_queue="audited", p_actor="ada", p_reason="look")
    engine.call("resume_queue", p_queue="audited", p_actor="ada", p_reason="look")


@pytest.mark.parametrize("text", ["\\u0000", "\\ud800", "\\udc00x", "\\\\\\u0000"])
def test_a_payload_that_no_text_can_hold_is_refused_under_all_of_them(target: Target, text: str):
    engine = set_up(target)
    engine.enqueue_one(queue="payloads")
    before = target.everything()
    for args in (f'{{"n": "{text}"}}', f'"{text}"'):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            engine.enqueue_one(queue="payloads", args=args)
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            engine.enqueue(queue="payloads", args=[args])
    assert target.everything() == before
    engine.enqueue_one(queue="payloads", args=json.dumps("\\u0000 \U0001f600"))


@pytest.mark.parametrize("run_at", ["2031-02-03T04:05:06Z", "2031-02-03T04:05:06.5+05:30"])
def test_a_time_is_read_alike_under_all_of_them(target: Target, run_at: str):
    """Year, month and day in this order, whatever the date style says."""
    engine = set_up(target)
    job = engine.enqueue_one(queue="times", run_at=run_at)
    assert target.value(
        "select run_at = %s::timestamptz from onecommit.scheduled where job_id = %s", run_at, job
    )
    for wrong in ("03.02.2031 04:05:06Z", "2031-02-03 04:05:06 IST", "now", "2031-02-03T04:05:06"):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            engine.enqueue_one(queue="times", run_at=wrong)


def test_without_row_security_work_is_refused_and_not_shown(target: Target):
    """The setting asks for all rows or an error; an operation that sees one scope gets the error."""
    engine = target.engine(*EVERYTHING)
    sent = arguments(
        request(scope="unshown"),
        store_id=str(target.value("select store_id from onecommit.store_status()")),
        epoch=engine.epoch,
    )
    engine.connection.execute("set row_security = off")
    before = target.everything()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        engine.call("accept_work", **sent)
    for table in ("work", "work_payload", "scope"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            engine.connection.execute(f"select 1 from onecommit.{table}")
    assert target.everything() == before


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_would_switch_a_guard_off_is_not_the_callers_to_set(target: Target, name: str):
    """Triggers that do not fire, names that mean another variable."""
    engine = target.engine(*EVERYTHING)
    engine.call("list_jobs", p_state=None, p_queue=None, p_kind=None, p_limit=1, p_before=None)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        engine.connection.execute(
            sql.SQL("set {} = default").format(sql.Identifier(*name.split(".")))
        )


def test_no_literal_holds_a_backslash_that_a_setting_could_read_otherwise(target: Target):
    """But in the form that is read alike always."""
    bodies = target.admin.execute(
        "select proname, prosrc from pg_proc where pronamespace = 'onecommit'::regnamespace"
    ).fetchall()
    literals = {
        name: re.findall(r"(?<![eE])'(?:[^']|'')*'", without_comments(body))
        for name, body in bodies
    }
    assert {name: texts for name, texts in literals.items() if any("\\" in t for t in texts)} == {}
