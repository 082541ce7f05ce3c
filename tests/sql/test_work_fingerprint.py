"""The published fingerprints are what SQL and Python compute, on every major."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onecommit.domain.fingerprint import encoding_of, fingerprint_of
from onecommit.domain.work import Safety
from onecommit.domain.work_policy import WorkPlan, WorkRetry
from onecommit.domain.work_request import WorkRequest

from tests.engine import Engine
from tests.work_requests import accept

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/work-fingerprints.md"
VECTORS = json.loads(re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)[-1])
STORED = "select fingerprint_schema, fingerprint from onecommit.work where work_id = %s"
MICROSECOND = timedelta(microseconds=1)


def microseconds(value: int) -> timedelta:
    return timedelta(microseconds=value)


def request_of(vector: dict) -> WorkRequest:
    """A vector's fields as a request."""
    fields = dict(vector["request"])
    fields["payload"] = fields["payload"].encode()
    fields["safety"] = Safety(fields["safety"])
    retry = {k.removesuffix("_us"): v for k, v in fields.pop("retry", {}).items()}
    fields["retry"] = WorkRetry(
        **{k: v if k == "max_attempts" else microseconds(v) for k, v in retry.items()}
    )
    if "plan" in fields:
        offsets = tuple(map(microseconds, fields["plan"]["offsets_us"]))
        fields["plan"] = WorkPlan(
            offsets=offsets, circuit=microseconds(fields["plan"]["circuit_us"])
        )
    for name in ("deadline", "due_at"):
        if name in fields:
            fields[name] = datetime.fromisoformat(fields[name])
    return WorkRequest(command_id="c", idempotency_key="k", **fields)


by_name = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])


@by_name
def test_python_computes_the_published_vectors(vector):
    found = fingerprint_of(request_of(vector))
    assert (found.schema, found.digest.hex()) == (vector["schema"], vector["sha256"])


@by_name
@pytest.mark.pg
def test_sql_computes_the_published_vectors(engine: Engine, vector):
    row = accept(engine, request_of(vector))
    assert engine.sql(STORED, row.work_id) == [(vector["schema"], bytes.fromhex(vector["sha256"]))]


def test_the_published_bytes_are_those_that_are_hashed():
    """The first vector is written out on the page."""
    [shown] = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    bytes_shown = "".join(line.partition("  ")[0].replace(" ", "") for line in shown.splitlines())
    assert encoding_of(request_of(VECTORS[0])).hex() == bytes_shown


NAMES = st.from_regex(r"[A-Za-z0-9._:-]{1,30}", fullmatch=True)
DURATIONS = st.timedeltas(min_value=MICROSECOND, max_value=timedelta(days=3660))
MOMENTS = st.datetimes(datetime(2200, 1, 1), datetime(3000, 1, 1), timezones=st.timezones())  # noqa: DTZ001  hypothesis adds the zone


@st.composite
def requests(draw) -> WorkRequest:
    """Any request that accept_work takes."""
    low, high = sorted([draw(DURATIONS), draw(DURATIONS)])
    renewal, lease, longest = sorted(draw(st.sets(DURATIONS, min_size=3, max_size=3)))
    planned = draw(st.booleans())
    later = sorted(draw(st.sets(DURATIONS, min_size=1, max_size=6)))
    plan = WorkPlan(offsets=(timedelta(0), *later[:-1]), circuit=later[-1]) if planned else None
    return WorkRequest(
        scope=draw(NAMES),
        command_id="c",
        idempotency_key="k",
        contract_name=draw(NAMES),
        contract_version=draw(NAMES),
        codec=draw(NAMES),
        classification=draw(NAMES),
        retention_id=draw(NAMES),
        payload=draw(st.binary(max_size=50)),
        safety=draw(st.sampled_from(Safety)),
        retry=WorkRetry(
            max_attempts=draw(st.integers(1, 1000)),
            max_elapsed=timedelta(days=3660) if planned else draw(DURATIONS),
            initial_delay=low,
            max_delay=high,
            lease=lease,
            renewal=renewal,
            max_lease=longest,
        ),
        plan=plan,
        deadline=draw(st.none() | MOMENTS) if planned else None,
        due_at=None if planned else draw(st.none() | MOMENTS),
    )


@pytest.mark.pg
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(asked=requests())
def test_sql_and_python_agree_on_any_request(engine: Engine, asked):
    with engine.open():
        row = accept(engine, asked)
        [stored] = engine.sql(STORED, row.work_id)
        engine.rollback()
    expected = fingerprint_of(asked)
    assert stored == (expected.schema, expected.digest)
