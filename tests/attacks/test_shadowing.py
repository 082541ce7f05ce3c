"""What a caller puts in the way of names, types and operators is never met by code that runs as somebody else."""

import re

import psycopg
import pytest

from tests.attacks import lifecycle
from tests.attacks.intruders import JOBS, WORK, Target
from tests.attacks.traps import HostileEngine, hostile, visits
from tests.catalog.routines import capabilities
from tests.catalog.test_strict_profile import CALLS
from tests.work_requests import accept, request
from tests.works import Runtime

pytestmark = pytest.mark.pg

EVERYTHING = (*JOBS, *WORK, "reader")


def test_no_operation_that_runs_as_its_owner_meets_a_trap(target: Target):
    """Each is called with something to do, in a session that called everything else first, and answers as ever."""
    engine = hostile(target, *EVERYTHING)
    call_directly(engine, target)
    sprung, escaped = visits(target)
    assert sprung > 0
    assert escaped == 0
    runtime = Runtime(target.engine("work_runtime"), owner=7, epoch=engine.epoch)
    lifecycle.jobs(engine, target)
    lifecycle.work(engine, runtime, target)
    lifecycle.epochs(engine, target)
    assert engine.called == {n for n, e in capabilities().items() if e["security"] == "definer"}
    assert visits(target)[1] == 0


def call_directly(engine: HostileEngine, target: Target) -> None:
    """Whatever the login may call and runs as its caller: PostgreSQL compiles it now, under the hostile path, and keeps it."""
    named = dict(target.admin.execute(CALLS).fetchall())
    granted = {
        n
        for n, e in capabilities().items()
        if "work_runtime" in e["grants"] and e["security"] == "invoker"
    }
    assert len(granted) > 30
    errors = {name: error_of(engine, named[name]) for name in sorted(granted)}
    outside = {n: e for n, e in errors.items() if e is not None and not e.diag.context}
    assert outside == {}, outside
    refused = [n for n, e in errors.items() if "permission denied for function" in str(e)]
    assert refused == []


def error_of(engine: HostileEngine, statement: str) -> psycopg.Error | None:
    try:
        engine.connection.execute(statement)
    except psycopg.Error as error:
        return error
    return None


# As a runtime may update these columns: what the guards alone refuse, of Work that ended, of Work that runs, of its permit.
FORGED = {
    "a terminal state": "update onecommit.work set state = 'pending', terminal_at = null where terminal_at is not null",
    "a terminal code": "update onecommit.work set code = 'forged' where terminal_at is not null",
    "an earlier revision": "update onecommit.work set revision = 0 where terminal_at is null",
    "an earlier attempt": "update onecommit.work set attempt = 0 where terminal_at is null",
    "an earlier lease": "update onecommit.work set lease_generation = 0 where terminal_at is null",
    "a lease without a state": "update onecommit.work set state = 'pending' where terminal_at is null",
    "a state without a lease": "update onecommit.work set lease_owner = null, lease_expires_at = null where terminal_at is null",
    "a cancellation taken back": "update onecommit.work set cancel_requested_at = null where terminal_at is null",
    "a cancellation moved": "update onecommit.work set cancel_requested_at = 'epoch' where terminal_at is null",
    "an admission reopened": "update onecommit.work set execution_admission_closed_at = null, execution_admission_closed_reason = null where terminal_at is null",
    "a reason replaced": "update onecommit.work set execution_admission_closed_reason = 'circuit' where terminal_at is null",
    "a deadline not reached": "update onecommit.work set execution_deadline_reached_at = null where terminal_at is null",
    "an admission of the permit": "update onecommit.effect_permit set invocation_admitted_at = null where closed_at is null",
    "another admission": "update onecommit.effect_permit set invocation_admitted_at = 'epoch' where closed_at is null",
    "an outcome that is known": "update onecommit.effect_permit set outcome = 'ambiguous' where closed_at is not null",
}  # fmt: skip
ENDED, RUNS = 0, 1


@pytest.fixture(scope="module")
def runtime_under_traps(target: Target) -> HostileEngine:
    """Work that ended and Work that runs, with every witness set; the runtime's session shows their scope, and has its traps."""
    runtime = Runtime(target.engine("work_runtime"), owner=8, epoch=target.epoch)
    acceptor = target.engine("work_acceptor")
    accepted = [
        accept(acceptor, request(scope="guarded", command_id=f"g{n}", idempotency_key=f"g{n}"))
        for n in (ENDED, RUNS)
    ]
    claimed = runtime.claim(*((row.work_id, row.revision) for row in accepted), scope="guarded")
    for each in claimed:
        assert runtime.permit(each, p_scope_id="guarded").outcome == "granted"
        assert runtime.admit(each, p_scope_id="guarded").outcome == "admitted"
    assert runtime.complete(claimed[ENDED], p_scope_id="guarded").state == "succeeded"
    target.admin.execute(
        "update onecommit.work set state = 'cancel_pending', cancel_requested_at = now(), execution_admission_closed_at = now(),"
        " execution_admission_closed_reason = 'deadline', execution_deadline_reached_at = now() where work_id = %s",
        (claimed[RUNS].work_id,),
    )
    engine = hostile(target, "work_runtime")
    # The one trap that would keep its own rows from it.
    engine.connection.execute("drop function evil.current_setting(pg_catalog.text, boolean)")
    engine.connection.execute(
        "select pg_catalog.set_config('onecommit.scope_id', 'guarded', false)"
    )
    return engine


@pytest.mark.parametrize("attack", FORGED)
def test_no_operator_of_its_own_leads_a_runtime_past_a_guard(
    target: Target, runtime_under_traps: HostileEngine, attack: str
):
    """A trigger runs as whoever writes and under its path; it looks no operator up there."""
    before = target.everything()
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        runtime_under_traps.connection.execute(FORGED[attack])
    assert "guard_" in refused.value.diag.context
    assert target.everything() == before


UNQUALIFIED = re.compile(
    r"^\s+v_\w+ (?:constant )?+(?!pg_catalog\.|\"?onecommit\"?\.|bigint\b|integer\b|smallint\b|boolean\b|interval\b)(\S+)",
    re.MULTILINE,
)


def test_what_roles_call_as_themselves_declares_no_type_that_is_looked_up(target: Target):
    """PL/pgSQL looks it up once for a session, at the first call, and a definer that calls the same helper gets what was found."""
    granted = [
        n
        for n, e in capabilities().items()
        if e["grants"] and e["security"] == "invoker" and e["class"] != "migration"
    ]
    bodies = target.admin.execute(
        "select proname, prosrc from pg_proc p join pg_language l on l.oid = p.prolang and lanname = 'plpgsql'"
        " where pronamespace = 'onecommit'::regnamespace and proname = any (%s)", (granted,)
    ).fetchall()  # fmt: skip
    assert len(bodies) > 15
    found = {name: UNQUALIFIED.findall(body.partition("\nbegin\n")[0]) for name, body in bodies}
    assert {name: types for name, types in found.items() if types} == {}
