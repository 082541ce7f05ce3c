"""Commands that nobody can mean, and rows that are damaged: told by name, and nothing is written."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from onecommit.domain.work import Safety

from tests.works import Operator, Works

pytestmark = pytest.mark.pg

COMMAND = "decide"
SECRET = "4242"


def unknown(works: Works, safety: Safety) -> tuple[int, int]:
    """Id and revision of Work whose provider call ended in the dark."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept(safety=safety))
    runtime.invoke(claimed)
    return claimed.work_id, runtime.complete(claimed, "ambiguous").revision


def cancel(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    return operator.cancel(work_id, **wrong)


def disable(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    return operator.disable(**wrong)


def begin(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    return operator.begin(work_id, **{"p_command_id": COMMAND} | wrong)


def resolve(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    named = {"p_evidence": "not_applied", "p_result": None, "p_result_codec": None}
    named |= {"p_work_id": work_id, "p_revision": revision, "p_proof_sha256": None}
    return operator.call("resolve_work", **named | wrong)


def finish(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    named = {"p_evidence": "not_applied", "p_result": None, "p_result_codec": None}
    named |= {"p_scope_id": "tenant-1", "p_command_id": COMMAND}
    named |= {"p_work_id": work_id, "p_revision": revision}
    return operator.engine.call("reconcile_finish", **named | wrong)[0]


def retry(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    return operator.retry_safe(work_id, revision, **wrong)


def release(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    return operator.release(work_id, revision, **wrong)


def release_all(operator: Operator, work_id: int, revision: int, **wrong: Any) -> Any:
    return operator.release_all(**{"preview": False} | wrong)


Command = Callable[..., Any]
COMMANDS = (cancel, disable, begin, resolve, retry, release, release_all)
ANYBODYS = {
    "command_id": (None, "", "a b", "x" * 201, "ä"),
    "actor": (None, "", "  ", "\n", "x" * 201),
    "reason": (None, "", "\t ", "x" * 1001),
}
EVIDENCE = [
    ("evidence", {"p_evidence": None}),
    ("evidence", {"p_evidence": "maybe"}),
    ("result", {"p_evidence": "applied", "p_result": b"1"}),
    ("result", {"p_evidence": "applied", "p_result_codec": "json"}),
    ("result", {"p_result": b"1", "p_result_codec": "json"}),
    ("result", {"p_evidence": "unknown", "p_result": b"1", "p_result_codec": "json"}),
    ("result", {"p_evidence": "applied", "p_result": b"x" * 262_145, "p_result_codec": "json"}),
    ("result_codec", {"p_evidence": "applied", "p_result": b"1", "p_result_codec": "a b"}),
]
OWN = [
    *((begin, "owner", {"p_owner": owner}) for owner in (None, "")),
    *((begin, "lease_us", {"p_lease_us": us}) for us in (None, 0, 999_999, 3_600_000_001)),
    *((command, field, wrong) for command in (finish, resolve) for field, wrong in EVIDENCE),
    (resolve, "proof_sha256", {"p_proof_sha256": b"x" * 31}),
    *((release_all, "limit", {"limit": limit}) for limit in (None, 0, 1001)),
    (release_all, "preview", {"preview": None}),
    (release_all, "command_id", {"command": "x" * 181}),
]


def refused(works: Works, call: Callable[[], Any], field: str) -> None:
    before = works.everything(), works.value("select count(*) from onecommit.operator_command")
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        call()
    message = caught.value.diag.message_primary
    assert field in message.partition(":")[0]
    assert "xxx" not in message
    assert before == (
        works.everything(),
        works.value("select count(*) from onecommit.operator_command"),
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("field", ANYBODYS)
def test_a_command_says_who_gives_it_why_and_under_which_id(
    works: Works, command: Command, field: str
):
    """Each of them does; a blank is no name and no reason."""
    work_id, revision = unknown(works, Safety.MANUAL_RESOLUTION)
    name = "command" if command is release_all and field == "command_id" else f"p_{field}"
    operator = works.operator()
    for value in ANYBODYS[field]:
        wrong = {name: value}
        refused(works, lambda wrong=wrong: command(operator, work_id, revision, **wrong), field)


@pytest.mark.parametrize(("command", "field", "wrong"), OWN)
def test_an_argument_out_of_bounds_is_named(
    works: Works, command: Command, field: str, wrong: dict[str, Any]
):
    """Though the Work waits for just this command."""
    safety = Safety.MANUAL_RESOLUTION if command is resolve else Safety.RECONCILE_BEFORE_RETRY
    work_id, revision = unknown(works, safety)
    operator = works.operator()
    if command is finish:
        begin(operator, work_id, revision)
    refused(works, lambda: command(operator, work_id, revision, **wrong), field)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("before", {"p_before": None}),
        *(("limit", {"p_limit": limit}) for limit in (None, 0, -1, 10_001)),
        *(
            (field, {f"p_{field}": value})
            for field in ("actor", "reason")
            for value in ANYBODYS[field]
        ),
    ],
)
def test_a_purge_has_a_time_a_bound_somebody_and_a_reason(
    works: Works, field: str, wrong: dict[str, Any]
):
    named = {"p_before": works.clock.now, "p_limit": 1, "p_actor": "ada", "p_reason": "old"}
    engine = works.engine("work_retention")
    refused(works, lambda: engine.call("purge_work", **named | wrong), field)


def test_evidence_within_its_bounds_is_taken(works: Works):
    """The longest result, and a digest of the proof."""
    work_id, revision = unknown(works, Safety.MANUAL_RESOLUTION)
    answer = resolve(
        works.operator(),
        work_id,
        revision,
        p_evidence="applied",
        p_result=b"x" * 262_144,
        p_result_codec="json",
        p_proof_sha256=b"p" * 32,
    )
    assert (answer.outcome, answer.state) == ("recorded", "succeeded")
    assert works.value("select proof_sha256 from onecommit.operator_command") == b"p" * 32


def test_a_corrupted_payload_is_not_reconciled(works: Works):
    """The provider would be asked about something that was never accepted."""
    work_id, revision = unknown(works, Safety.RECONCILE_BEFORE_RETRY)
    works.store.observer.execute(
        "update onecommit.work_payload set payload = %s", (SECRET.encode(),)
    )
    before = works.everything()
    with pytest.raises(psycopg.Error, match="not what was accepted") as damaged:
        begin(works.operator(), work_id, revision)
    assert damaged.value.sqlstate == "OC012"
    assert SECRET not in str(damaged.value)
    assert works.everything() == before
    assert works.value("select count(*) from onecommit.operator_command") == 0


DECIDING = {
    cancel: Safety.IDEMPOTENT,
    begin: Safety.RECONCILE_BEFORE_RETRY,
    finish: Safety.RECONCILE_BEFORE_RETRY,
    resolve: Safety.MANUAL_RESOLUTION,
    retry: Safety.IDEMPOTENT,
    release: Safety.IDEMPOTENT,
}


@pytest.mark.parametrize("command", DECIDING)
def test_a_missing_dispatch_row_is_damage(works: Works, command: Command):
    """No command decides about an item that nobody would find again."""
    work_id, revision = unknown(works, DECIDING[command])
    operator = works.operator()
    if command is finish:
        begin(operator, work_id, revision)
    works.store.observer.execute("delete from onecommit.dispatch")
    before = works.everything()
    with pytest.raises(psycopg.Error, match="dispatch row") as damaged:
        command(operator, work_id, revision)
    assert damaged.value.sqlstate == "OC012"
    assert works.everything() == before
