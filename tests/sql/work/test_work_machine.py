"""The store and a model of the text, asked the same in random histories: machine.py says what happens in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.sql.work.machine import WorkStore
from tests.sql.work.machine_calls import Calls
from tests.works import Works

pytestmark = pytest.mark.pg

GENERATE = (Phase.explicit, Phase.reuse, Phase.generate)
SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
    # Not explain: it traces every line.
    "phases": (*GENERATE, Phase.shrink),
}
USUAL = {"max_examples": 100, "stateful_step_count": 30, "derandomize": True}
MORE = {"max_examples": 500}

# Guards of the protocol, each with what is left when it is gone: routine, text, replacement.
GUARDS = {
    "a second admission": ("admit_invocation", " and p.invocation_admitted_at is null", ""),
    "a failure without knowledge": (
        "decide_end",
        "when p_unresolved then",
        "when p_unresolved and p_event <> 'failed_terminal' then",
    ),
    "a lease at its very end": ("fence_code", "p_now >= p_work", "p_now > p_work"),
    "a cutoff at its very moment": ("admission_closed", "p_now < ", "p_now <= "),
    "another command under its id": (
        "replayed_command",
        "or v_known.fingerprint <> p_fingerprint",
        "",
    ),
    "an admission that a restore lost": ("may_have_had_effect", " or p_epoch <> p_current", ""),
    "the idempotency key": ("find_acceptance", "w.idempotency_key = p_idempotency_key", "false"),
    "an admission after the cutoff": (
        "admit_invocation",
        '"onecommit".admission_closed(v_work, v_now) is not null',
        "false",
    ),
    "an attempt before its time": (
        "claim_verdict",
        "when p_now < p_work.eligible_at then 'lost'",
        "",
    ),
    "an unknown end where no admission stands": (
        "end_attempt",
        "p_sight.admitted or p_sight.granted is not null",
        "p_sight.admitted and p_sight.granted is not null",
    ),
    "the epoch of who frees it": ("retry_safe", ", epoch = p_epoch", ""),
    "one permit alone": (
        "apply_evidence",
        "p.permit_id = p_permit_id",
        "p.work_id = p_work.work_id",
    ),
}


def run(works: Works, **options: Any) -> None:
    """Under later and later epochs; the fence goes back afterwards, because the store is shared."""
    before = works.store.epoch
    machine = type("WorkStoreUnderTest", (WorkStore,), {"calls": Calls(works)})
    machine.TestCase.settings = settings(**SETTINGS | options)
    try:
        machine.TestCase().runTest()
    finally:
        works.store.epoch = before
        observer = works.store.observer
        observer.execute("reset all")
        observer.execute("select setval('onecommit.epoch_fence', %s, true)", (before,))
        observer.execute("delete from onecommit.runtime_epoch_history where epoch > %s", (before,))


@contextmanager
def broken(works: Works, routine: str, guard: str, instead: str) -> Iterator[None]:
    """The store without this guard."""
    whole = works.value("select pg_get_functiondef(%s::regproc)", f"onecommit.{routine}")
    assert guard in whole
    works.store.observer.execute(whole.replace(guard, instead))
    try:
        yield
    finally:
        works.store.observer.execute(whole)


@pytest.mark.timeout(300)
def test_the_store_follows_the_text(works: Works):
    """Every operation in any order answers as the text says, and the rows are what it says."""
    run(works, **USUAL)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_store_follows_the_text_for_long(works: Works):
    """The same with many more, longer and always other histories."""
    run(works, max_examples=1000, stateful_step_count=60)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_is_gone_is_missed(works: Works, guard: str):
    """By histories as the usual run tries them, and some more for the rarest."""
    with (
        broken(works, *GUARDS[guard]),
        pytest.raises((AssertionError, psycopg.Error)),
    ):
        run(works, **USUAL | MORE, phases=GENERATE, report_multiple_bugs=False)
