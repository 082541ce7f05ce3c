"""Whatever comes as arguments of an operation: it is answered, or refused with a code of ours; no other error comes out."""

import tomllib
from importlib import resources
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onecommit.domain.work import Safety

from tests.logins import CAPABILITIES
from tests.work_requests import arguments, request
from tests.works import Runtime, Works

pytestmark = pytest.mark.pg

FUZZ = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MANIFEST = tomllib.loads((resources.files("onecommit") / "sql/capabilities.toml").read_text())
# Operations and the role that may call each; one has no arguments.
OPERATIONS = {
    name: next(role for role in CAPABILITIES if role in entry["grants"])
    for name, entry in MANIFEST["work"].items()
    if entry["class"] not in {"internal", "trigger"}
    and set(entry["grants"]) & set(CAPABILITIES)
    and name != "work_counts"
}
# Commands about Work of the class that waits for them; the others are about an item that is admitted.
DECIDES = {
    "reconcile_begin": Safety.RECONCILE_BEFORE_RETRY,
    "reconcile_finish": Safety.RECONCILE_BEFORE_RETRY,
    "resolve_work": Safety.MANUAL_RESOLUTION,
    "retry_safe": Safety.IDEMPOTENT,
}
# Of the protocol: an argument, an epoch that raises because no code is returned, a savepoint, another isolation.
OURS = {"22023", "OC002", "OC004", "OC006"}
TYPES = """
select p.proargnames[1:p.pronargs], array(select format_type(t, null) from unnest(p.proargtypes) t)
from pg_proc p where p.pronamespace = 'onecommit'::regnamespace and p.proname = %s
"""
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
WORDS = (
    "tenant-1",
    "nobody",
    "c1",
    "billing.charge",
    "1",
    "json",
    "applied",
    "unknown",
    "succeeded",
    "exception",
    "pending",
    "idempotent",
    "exponential-v1",
    "x" * 201,
    "a\\b'\"",
)
SMALL = st.sampled_from([None, 0, 1, 2, 3, 7, -1])
TIMES = st.sampled_from(
    [None, "infinity", "-infinity", "0001-01-01Z", "2000-01-01Z", "2100-01-01Z", "294276-12-31Z"]
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "text": st.none() | st.sampled_from(WORDS) | TEXT,
    "smallint": SMALL | st.integers(-(2**15), 2**15 - 1),
    "integer": SMALL | st.sampled_from([-(2**31), 2**31 - 1]) | st.integers(-(2**31), 2**31 - 1),
    "bigint": SMALL | st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1),
    "boolean": st.sampled_from([None, True, False]),
    "bytea": st.none() | st.binary(max_size=40),
    "uuid": st.none() | st.uuids(),
    "timestamp with time zone": TIMES,
}


def any_value(kind: str) -> st.SearchStrategy[Any]:
    if kind.endswith("[]"):
        return st.none() | st.lists(SCALARS[kind.removesuffix("[]")], max_size=3)
    return SCALARS[kind]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_arguments(works: Works, operation: str):
    """Beside Work in several states, in a transaction that is taken back."""
    runtime = works.runtime()
    ids = [works.accept(safety=safety).work_id for safety in (*Safety, *Safety)]
    claims = runtime.claim(*((work_id, 1) for work_id in ids[1:]))
    for claimed in claims:
        runtime.invoke(claimed)
    for claimed in claims[3:]:
        assert runtime.complete(claimed, "ambiguous").code == "ASDUR106"
    waiting = dict(zip(Safety, ids[4:], strict=True))
    usual = plausible(runtime, ids) | accepted(works)
    if operation in DECIDES:
        usual |= {"p_work_id": waiting[DECIDES[operation]], "p_revision": 4, "p_owner": "host-1"}
    if operation == "reconcile_finish":
        begun = works.operator().begin(usual["p_work_id"], p_command_id=usual["p_command_id"])
        assert begun.outcome == "started"
    if operation == "purge_work":
        usual["p_before"] = works.clock.now
    names, types = works.store.observer.execute(TYPES, (operation,)).fetchone()
    engine = works.engine(OPERATIONS[operation])

    @FUZZ
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        sent = {name: usual[name] for name in names}
        kinds = dict(zip(names, types, strict=True))
        for name in data.draw(st.sets(st.sampled_from(names), max_size=3)):
            sent[name] = data.draw(any_value(kinds[name]), label=name)
        engine.begin()
        try:
            engine.call(operation, **sent)
        except psycopg.Error as refused:
            assert refused.sqlstate in OURS, refused  # noqa: PT017  other codes are shown with their text
        finally:
            engine.rollback()

    ask()


def accepted(works: Works) -> dict[str, Any]:
    """What accept_work asks for."""
    store_id = works.value("select store_id from onecommit.store_status()")
    return arguments(
        request(command_id="new", idempotency_key="new"),
        store_id=store_id,
        epoch=works.store.epoch,
    )


def plausible(runtime: Runtime, ids: list[int]) -> dict[str, Any]:
    """What the other operations ask for, about items that are admitted."""
    count = len(ids)
    return {
        "p_work_id": ids[1],
        "p_work_ids": ids,
        "p_revisions": [3] * count,
        "p_revision": 3,
        "p_attempt": 1,
        "p_attempts": [1] * count,
        "p_lease_generation": 1,
        "p_lease_generations": [1] * count,
        "p_scope_generation": 1,
        "p_scope_generations": [1] * count,
        "p_generation": 1,
        "p_owner": runtime.owner,
        "p_request": 9,
        "p_event": "exception",
        "p_code": "app.busy",
        "p_result": None,
        "p_result_codec": None,
        "p_evidence": "not_applied",
        "p_proof_sha256": None,
        "p_actor": "ada",
        "p_reason": "asked",
        "p_names": ["billing.charge"],
        "p_versions": ["1"],
        "p_limit": 10,
        "p_before": None,
        "p_preview": False,
        "p_sleep": True,
        "p_states": None,
        "p_needs_operator": False,
        "p_by_scope": True,
        "p_lease_us": 60_000_000,
    }
