"""Arguments that nobody can mean write nothing."""

import psycopg
import pytest

from tests.works import Runtime, Works

pytestmark = pytest.mark.pg

FENCE = ("p_attempt", "p_lease_generation", "p_owner")


def lost(runtime: Runtime, *item: int, **options) -> str:
    [row] = runtime.claim(item, **options)
    assert row.outcome == "lost"
    assert (row.payload, row.command_id, row.revision) == (None, None, None)
    return row.code


BAD_COMPLETIONS = [
    {"p_event": None},
    {"p_event": "cancel"},
    {"p_event": "lease_expired"},
    {"p_result": None},
    {"p_result_codec": None},
    {"p_result": b"x" * 262_145},
    {"p_result_codec": "a b"},
    {"p_code": "app.busy"},
    {"p_event": "exception"},
    {"p_event": "exception", "p_result": None},
    *(
        {"p_event": "exception", "p_result": None, "p_result_codec": None, "p_code": code}
        for code in ("", "a b", "x" * 121, "ASDUR105", "asdur_mine", "AsDuR")
    ),
    *({field: None} for field in (*FENCE, "p_scope_generation")),
]


@pytest.mark.parametrize("bad", BAD_COMPLETIONS, ids=str)
def test_a_completion_that_nobody_can_mean_is_refused(works: Works, bad: dict):
    """And named by the field; its value is in no message."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    runtime.invoke(claimed)
    before = works.everything()
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        runtime.complete(claimed, **bad)
    assert "mine" not in str(caught.value)
    assert "xxx" not in str(caught.value)
    assert works.everything() == before


@pytest.mark.parametrize(
    "bad",
    [
        {"p_work_ids": []},
        {"p_work_ids": None},
        {"p_revisions": [1, 2]},
        {"p_work_ids": [1, 1], "p_revisions": [1, 1]},
        {"p_work_ids": [None]},
        {"p_work_ids": list(range(1001)), "p_revisions": [1] * 1001},
        {"p_owner": None},
        {"p_request": None},
    ],
    ids=str,
)
def test_a_claim_of_nonsense_is_refused(works: Works, bad: dict):
    works.accept()
    asked = {"p_work_ids": [1], "p_revisions": [1], "p_owner": 1, "p_request": 1}
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        works.runtime().engine.call("claim_work", p_scope_id="tenant-1", **asked | bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"p_work_ids": []},
        {"p_work_ids": None},
        {"p_attempts": [1, 2]},
        {"p_attempts": None},
        {"p_lease_generations": []},
        {"p_scope_generations": None},
    ],
    ids=str,
)
def test_a_renewal_of_nonsense_is_refused(works: Works, bad: dict):
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        runtime.renew(claimed, **bad)


def test_no_argument_makes_a_scope_of_nothing(works: Works):
    """Neither null nor empty nor a name that no scope can have."""
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    for scope in (None, "", "a b", "x" * 300):
        assert runtime.permit(claimed, p_scope_id=scope).code == "ASDUR113"
        assert lost(runtime, claimed.work_id, 2, scope=scope) == "ASDUR113"


@pytest.mark.parametrize("epoch", [None, 0, -1, 2**62])
def test_no_argument_makes_an_epoch(works: Works, epoch: int | None):
    runtime = works.runtime()
    claimed = runtime.take(works.accept())
    assert runtime.permit(claimed, p_epoch=epoch).code == "ASDUR108"
