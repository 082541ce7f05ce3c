"""Whatever JSON comes as arguments or options: it is accepted as it is, or refused with 22023 and nothing is written."""

import json

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.engine import Engine

pytestmark = pytest.mark.pg

FUZZ = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# PostgreSQL's text cannot hold NUL at all, and psycopg cannot send a lone surrogate: both come as escapes only.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
KEYS = [
    "priority",
    "max_attempts",
    "run_at",
    "delay_us",
    "timeout_us",
    "unique",
    "tags",
    "trace",
    "meta",
    "other",
]
LIKELY = st.sampled_from(
    [
        None,
        0,
        1,
        4,
        "2030-01-01T00:00:00Z",
        "0001-01-01T00:00:00+15",
        {"key": "ab"},
        ["a"],
        {},
        [],
        "",
    ]
)
OPTIONS = st.dictionaries(st.sampled_from(KEYS), LIKELY | VALUES, max_size=4)


def waiting(engine: Engine) -> int:
    return engine.value(
        "select (select count(*) from onecommit.ready) + (select count(*) from onecommit.scheduled)"
    )


@FUZZ
@given(options=st.one_of(OPTIONS, st.lists(OPTIONS, min_size=2, max_size=2), VALUES))
@example(options={"run_at": "2030-02-30T00:00:00Z"})
def test_any_options(engine: Engine, options):
    """No other error comes out, and a refusal leaves the transaction's other work alone."""
    before = waiting(engine)
    try:
        answer = engine.enqueue(2, options=options)
    except psycopg.errors.InvalidParameterValue:
        assert waiting(engine) == before
    else:
        created = answer.created or [True, True]
        assert waiting(engine) == before + sum(created)
        assert all(engine.job(job) is not None for job in answer.job_ids)


@st.composite
def nearly_json(draw) -> str:
    """A JSON text, perhaps with a piece put in or taken out."""
    text = json.dumps(draw(VALUES), ensure_ascii=draw(st.booleans()))
    place = draw(st.integers(0, len(text)))
    piece = draw(
        st.sampled_from(
            [
                "",
                "\\u0000",
                "\\ud800",
                "\\\\u0000",
                "\\ud83d\\ude00",
                "{",
                '"',
                ",",
                "NaN",
                "\x01",
                "1e999",
            ]
        )
    )
    return text[:place] + piece + text[place + draw(st.integers(0, 1)) :]


def is_acceptable(text: str) -> bool:
    """What Python's own parser makes of it, by the rules that jobs' arguments have."""

    def refuse(constant: str):
        raise ValueError(constant)

    try:
        value = json.loads(text, parse_constant=refuse)
        canonical = json.dumps(value, ensure_ascii=False)
        canonical.encode()
    except ValueError:
        return False
    return "\\u0000" not in canonical.replace("\\\\", "")


@FUZZ
@given(text=nearly_json(), count=st.integers(1, 2))
def test_any_arguments(engine: Engine, text: str, count: int):
    """The store accepts exactly what is JSON and can be held, and gives it back byte for byte."""
    try:
        jobs = engine.enqueue(args=[text] * count).job_ids
    except psycopg.errors.InvalidParameterValue:
        assert not is_acceptable(text)
    else:
        assert is_acceptable(text)
        assert [engine.job(job).args for job in jobs] == [text] * count


@FUZZ
@given(data=st.data())
def test_any_token(engine: Engine, data):
    """A forged token names nothing, whatever its numbers are."""
    [attempt] = engine.take()
    token = {
        field: data.draw(
            st.sampled_from([value, None, value + 1]) | st.integers(-(2**31), 2**31 - 1),
            label=field,
        )
        for field, value in attempt.token.items()
    }
    if token == attempt.token:
        return
    with pytest.raises(psycopg.Error) as refused:
        engine.call("complete_job", **token, progress=None)
    assert refused.value.sqlstate == "OC001"
    assert engine.call("attempt_status", **token)[0].state == "unknown"
    assert engine.status(attempt).state == "open"
