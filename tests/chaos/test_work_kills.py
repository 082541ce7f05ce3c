"""A worker is killed at a provider call; what comes next is decided by the safety class, never by a guess."""

import subprocess
import sys

import pytest

from onecommit.domain.work import Safety

from tests.chaos.processes import ROOT, environment, observe, wait_until
from tests.chaos.provider import PROVIDER
from tests.strict import StrictDatabase, database

__all__ = ["database"]
pytestmark = [pytest.mark.pg, pytest.mark.chaos]

SUSPENDED = {
    Safety.RECONCILE_BEFORE_RETRY: "suspended_reconciliation_required",
    Safety.MANUAL_RESOLUTION: "suspended_manual_resolution",
}
CALLED = "select count(*) from provider"
STATE = "select coalesce(max(state), '') from onecommit.work"
GATE = """
create function hold_admission() returns trigger language plpgsql as $$
begin
    if new.invocation_admitted_at is not null and new.attempt = 1 then
        perform pg_advisory_xact_lock(4711);
    end if;
    return new;
end $$;
create trigger hold_admission before update on onecommit.effect_permit
    for each row execute function hold_admission();
"""
HELD = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"


@pytest.fixture
def env(database):
    with database.connect() as connection:
        connection.execute(PROVIDER)
    return environment(database, login="worker")


def accept(database: StrictDatabase, safety: Safety) -> None:
    """By the application's own definition, in a process that is no worker."""
    script = (
        "from tests.chaos.provider import app\n"
        f"work = app.registry.work.get('charge.{safety.value}', '1')\n"
        "work.sync.accept({'cents': 1}, scope='s', command_id='c', idempotency_key='k')\n"
    )
    env = environment(database, login="web")
    subprocess.run([sys.executable, "-c", script], env=env, cwd=ROOT, check=True)


def start_worker(env: dict[str, str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "onecommit", "worker", "tests.chaos.provider:app"]
    return subprocess.Popen(command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL)


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


@pytest.mark.parametrize("safety", list(Safety))
def test_a_kill_after_admission(database, env, safety: Safety):
    """The provider did it and nobody heard: tried again with the same key, or suspended; never failed."""
    accept(database, safety)
    first = start_worker(env)
    try:
        wait_until(lambda: observe(database, CALLED) == 1, what="the provider is called")
    finally:
        kill(first)
    second = start_worker(env)
    try:
        expected = SUSPENDED.get(safety, "succeeded")
        wait_until(lambda: observe(database, STATE) == expected, what=expected)
    finally:
        kill(second)
    keys = "select count(distinct key) from provider"
    assert observe(database, keys) == 1
    assert observe(database, CALLED) == (1 if safety in SUSPENDED else 2)
    assert (
        observe(
            database, "select count(*) from onecommit.work_history where event = 'lease_expired'"
        )
        == 1
    )


@pytest.mark.parametrize("safety", list(Safety))
def test_a_kill_between_permit_and_admission(database, env, safety: Safety):
    """Nothing began, and that is known: it is tried again in every class, and the provider is called once."""
    with database.connect() as owner:
        owner.execute(GATE)
        owner.execute("select pg_advisory_lock(4711)")
        accept(database, safety)
        first = start_worker(env)
        try:
            wait_until(lambda: observe(database, HELD) == 1, what="the admission is on its way")
        finally:
            kill(first)
        # Its session still waits; ended like the process, its transaction never commits.
        owner.execute(
            "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"
        )
        owner.execute("select pg_advisory_unlock(4711)")
    second = start_worker(env)
    try:
        wait_until(lambda: observe(database, STATE) == "succeeded", what="it succeeds")
    finally:
        kill(second)
    assert observe(database, CALLED) == 1
    assert observe(database, "select attempt from provider") == 2
    outcomes = "select string_agg(outcome, ' ' order by permit_id) from onecommit.effect_permit"
    assert observe(database, outcomes) == "proven_no_effect known_succeeded"
