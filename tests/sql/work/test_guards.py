"""What was accepted, authorized or decided once stays so, whoever may write: the tables refuse it themselves."""

from typing import Any

import psycopg
import pytest

from onecommit.domain.work import Safety

from tests.works import NOON, SECOND, Works

pytestmark = pytest.mark.pg

# Another value of the same type.
OTHER = {
    "text": "coalesce({0}, '') || 'x'",
    "boolean": "not {0}",
    "bytea": "sha256('another')",
    "integer": "coalesce({0}, 0) + 1",
    "smallint": "coalesce({0}, 0) + 1",
    "bigint": "coalesce({0}, 0) + 1",
    "bigint[]": "coalesce({0}, '{{}}') || 1::bigint",
    "uuid": "gen_random_uuid()",
    "timestamp with time zone": "coalesce({0}, now()) + interval '1 second'",
}
# Of a domain that has few values.
ANOTHER = {"state": "'failed'", "execution_admission_closed_reason": "'circuit'"}
TYPES = """
select a.attname::text, format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid), null)
from pg_attribute a join pg_type t on t.oid = a.atttypid
where a.attrelid = %s::regclass and a.attnum > 0 and a.attidentity = '' and not a.attisdropped
"""
# The columns that go on changing; every other one belongs to what was accepted, or authorized.
LIFECYCLE = {
    "scope_generation",
    "epoch",
    "state",
    "code",
    "revision",
    "attempt",
    "authorized_attempts",
    "eligible_at",
    "lease_generation",
    "lease_owner",
    "lease_request",
    "lease_started_at",
    "lease_expires_at",
    "cancel_requested_at",
    "execution_admission_closed_at",
    "execution_admission_closed_reason",
    "execution_deadline_reached_at",
    "terminal_at",
    "purged_at",
}
OUTCOME = {"epoch", "outcome", "closed_at", "invocation_admitted_at"}


def columns(works: Works, table: str) -> dict[str, str]:
    """Each column, and an expression for another value."""
    rows = works.store.observer.execute(TYPES, (f"onecommit.{table}",)).fetchall()
    return {name: ANOTHER.get(name) or OTHER[kind].format(name) for name, kind in rows}


def refused(works: Works, table: str, changes: str, match: str) -> None:
    """The owner's own UPDATE, beside all grants and policies."""
    before = works.everything()
    with pytest.raises(psycopg.errors.CheckViolation, match=match):
        works.store.observer.execute(f"update onecommit.{table} set {changes}")
    assert works.everything() == before


def invoked(works: Works, **changes: Any) -> tuple[Any, Any]:
    runtime = works.runtime()
    claimed = runtime.take(works.accept(**changes))
    runtime.invoke(claimed)
    return runtime, claimed


def test_no_column_of_an_acceptance_can_be_changed(works: Works):
    """Identities, contract, payload digest, policy, fingerprint, provider key."""
    works.accept()
    accepted = {k: v for k, v in columns(works, "work").items() if k not in LIFECYCLE}
    assert {"activity_id", "command_id", "payload_sha256", "offsets_us", "fingerprint"} <= set(
        accepted
    )
    for column, other in accepted.items():
        refused(works, "work", f"{column} = {other}", "acceptance")


def test_terminal_work_cannot_be_changed(works: Works):
    """But that its bytes are purged."""
    runtime, claimed = invoked(works)
    runtime.complete(claimed)
    lifecycle = {k: v for k, v in columns(works, "work").items() if k in LIFECYCLE - {"purged_at"}}
    for column, other in lifecycle.items():
        refused(works, "work", f"{column} = {other}", "terminal")
    works.store.observer.execute("update onecommit.work set purged_at = now()")
    refused(works, "work", "purged_at = now() + interval '1 day'", "written once")


def test_a_witness_is_written_once(works: Works):
    """Each by itself, also with the value that another one has."""
    works.accept(deadline=NOON + 9 * SECOND)
    works.store.observer.execute(
        "update onecommit.work set execution_admission_closed_at = now(), execution_admission_closed_reason = 'circuit',"
        " execution_deadline_reached_at = now(), cancel_requested_at = now()"
    )
    for column in (
        "execution_admission_closed_at",
        "execution_deadline_reached_at",
        "cancel_requested_at",
    ):
        for other in ("null", f"{column} + interval '1 microsecond'"):
            refused(works, "work", f"{column} = {other}", "written once")
    refused(works, "work", "execution_admission_closed_reason = 'elapsed'", "written once")


@pytest.mark.parametrize("column", ["revision", "attempt", "lease_generation"])
def test_numbers_of_a_fence_never_go_back(works: Works, column: str):
    """Else an old fence would hold again."""
    invoked(works)
    refused(works, "work", f"{column} = {column} - 1", "only rise")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ("state = 'done'", "work_state"),
        ("state = 'pending'", "fit together"),
        ("lease_owner = null", "fit together"),
        ("lease_expires_at = null", "fit together"),
        ("terminal_at = now()", "fit together"),
        ("execution_admission_closed_reason = 'tired'", "closed_reason"),
    ],
)
def test_a_state_has_what_belongs_to_it(works: Works, changes: str, match: str):
    """A lease exactly while an attempt runs, an end exactly where it is terminal."""
    invoked(works)
    refused(works, "work", changes, match)


def test_what_a_permit_authorized_cannot_be_changed(works: Works):
    """Neither the attempt nor the lease nor the activity, nor an admission that was given."""
    invoked(works)
    authorized = {k: v for k, v in columns(works, "effect_permit").items() if k not in OUTCOME}
    assert {"attempt", "lease_generation", "scope_generation", "activity_id"} <= set(authorized)
    for column, other in authorized.items():
        refused(works, "effect_permit", f"{column} = {other}", "permit authorized")
    for other in ("null", "invocation_admitted_at + interval '1 microsecond'"):
        refused(works, "effect_permit", f"invocation_admitted_at = {other}", "admission")


@pytest.mark.parametrize("outcome", ["known_succeeded", "proven_no_effect"])
def test_a_known_outcome_of_a_permit_is_final(works: Works, outcome: str):
    runtime, claimed = invoked(works)
    event = "succeeded" if outcome == "known_succeeded" else "retry_before_effect"
    runtime.complete(claimed, event)
    assert works.permits(claimed.work_id) == [(1, outcome, True)]
    for other in {"granted", "ambiguous", "known_succeeded", "proven_no_effect"} - {outcome}:
        refused(works, "effect_permit", f"outcome = '{other}'", "known outcome")


def test_a_permit_names_what_it_authorized(works: Works):
    """The exact attempt, lease, scope generation, epoch, owner and activity; it is the only one of the attempt."""
    works.clock.stop()
    runtime, claimed = invoked(works)
    [permit] = works.store.observer.execute(
        "select scope_id::text, attempt, lease_generation, scope_generation, epoch, lease_owner, activity_id, granted_at"
        " from onecommit.effect_permit where work_id = %s",
        (claimed.work_id,),
    ).fetchall()
    fence = (claimed.attempt, claimed.lease_generation, claimed.scope_generation)
    assert permit == (
        "tenant-1",
        *fence,
        works.store.epoch,
        runtime.owner,
        claimed.activity_id,
        NOON,
    )
    with pytest.raises(psycopg.errors.UniqueViolation):
        works.store.observer.execute(
            "insert into onecommit.effect_permit (work_id, scope_id, attempt, lease_generation, scope_generation, epoch,"
            " lease_owner, activity_id, granted_at) select work_id, scope_id, attempt, lease_generation, scope_generation,"
            " epoch, lease_owner, activity_id, granted_at from onecommit.effect_permit"
        )


# Every way to a terminal state.
def succeed(works: Works) -> int:
    runtime, claimed = invoked(works)
    return runtime.complete(claimed) and claimed.work_id


def fail(works: Works) -> int:
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    return runtime.complete(claimed, "failed_terminal") and claimed.work_id


def cancel(works: Works) -> int:
    work_id = works.accept().work_id
    return works.operator().cancel(work_id) and work_id


def disable(works: Works) -> int:
    work_id = works.accept().work_id
    return works.operator().disable() and work_id


def resolve(works: Works) -> int:
    runtime, claimed = invoked(works, safety=Safety.MANUAL_RESOLUTION)
    revision = runtime.complete(claimed, "exception").revision
    return (
        works.operator().resolve(claimed.work_id, revision, "applied", result=b"1")
        and claimed.work_id
    )


def close(works: Works) -> int:
    works.clock.stop()
    work_id = works.accept(deadline=NOON + SECOND).work_id
    works.clock.pass_(SECOND)
    return works.runtime().claim(*works.due()) and work_id


@pytest.mark.parametrize("way", [succeed, fail, cancel, disable, resolve, close])
def test_a_terminal_fact_is_the_history_row_of_the_same_transaction(works: Works, way: Any):
    """One row of history says the state, at the revision, with the very commit that made it so."""
    work_id = way(works)
    facts = works.store.observer.execute(
        "select h.xmin = w.xmin, h.to_state = w.state, h.at = w.terminal_at from onecommit.work w"
        " join onecommit.work_history h on h.work_id = w.work_id and h.revision = w.revision where w.work_id = %s",
        (work_id,),
    ).fetchall()
    assert facts == [(True, True, True)]
    assert works.row(work_id)["terminal_at"] is not None
