"""Arguments are refused where they are enqueued, by the name of the field and never by its value."""

import dataclasses
import enum
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecommit.domain.payload import LARGEST_PAYLOAD, Payload, encode_result
from onecommit.domain.signature import arguments_of
from onecommit.errors import InvalidArgument

SECRET = "hunter2"


@dataclasses.dataclass
class Line:
    sku: str
    price: float = 1.0


class Money(msgspec.Struct):
    amount: Decimal
    currency: str = "EUR"


class Address(TypedDict):
    street: str


class Customer(pydantic.BaseModel):
    age: int


class Colour(enum.Enum):
    RED = "red"


async def handler(
    ctx,
    to: str,
    *,
    count: int = 0,
    weight: float | None = None,
    lines: list[Line] = [],  # noqa: B006  never changed
    money: Money | None = None,
    address: Address | None = None,
    customer: Customer | None = None,
    colour: Colour = Colour.RED,
    at: datetime | None = None,
    wait: timedelta | None = None,
    key: UUID | None = None,
    raw: bytes = b"",
    anything: Any = None,
) -> None: ...


PAYLOAD = Payload(arguments_of(handler))


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "a@example.com"},
        {"to": "", "count": 2**70, "weight": 1.5},
        {"to": "null", "weight": None},
        {"to": "a backslash and letters: \\u0000"},
        {"to": "é \U0001f600 \" ' \\ \n\t"},
        {"to": "a", "lines": [Line("x", 2.0), Line("y")]},
        {"to": "a", "money": Money(Decimal("1.10")), "address": {"street": "s"}},
        {"to": "a", "customer": Customer(age=3), "colour": Colour.RED},
        {"to": "a", "at": datetime(2026, 1, 2, tzinfo=UTC), "wait": timedelta(seconds=1.5)},
        {"to": "a", "key": UUID(int=5), "raw": b"\x00\xff"},
        {"to": "a", "anything": {"deep": [1, None, {"er": True}]}},
    ],
    ids=",".join,
)
def test_what_a_handler_declares_comes_back_as_it_was(arguments: dict[str, Any]):
    assert PAYLOAD.decode(PAYLOAD.encode(arguments)) == arguments


loop: list[Any] = []
loop.append(loop)


@pytest.mark.parametrize(
    ("arguments", "field", "problem"),
    [
        ({}, "to", "is missing"),
        ({"to": 5}, "to", "expected `str`, got `int`"),
        ({"to": "a", "count": SECRET}, "count", "expected `int`, got `str`"),
        ({"to": "a", "count": True}, "count", "expected `int`, got `bool`"),
        ({"to": "a", SECRET[::-1]: 1}, SECRET[::-1], "is not an argument"),
        ({"to": f"{SECRET}\0"}, "to", "NUL"),
        ({"to": f"{SECRET}\ud800"}, "to", "lone surrogate"),
        ({"to": "a", "weight": float("nan")}, "weight", "NaN"),
        ({"to": "a", "weight": float("-inf")}, "weight", "NaN or infinite"),
        ({"to": "a", "anything": {SECRET: [0, float("nan")]}}, "anything[...][1]", "NaN"),
        ({"to": "a", "anything": {f"{SECRET}\0": 1}}, "anything[...]", "NUL"),
        ({"to": "a", "lines": [Line("x"), Line("y", float("nan"))]}, "lines[1].price", "NaN"),
        ({"to": "a", "lines": [Line(f"{SECRET}\0")]}, "lines[0].sku", "NUL"),
        ({"to": "a", "lines": [{"sku": 1}]}, "lines[0].sku", "expected `str`"),
        ({"to": "a", "address": {}}, "address.street", "is missing"),
        ({"to": "a", "customer": {"age": SECRET}}, "customer", "got int_parsing for `age`"),
        ({"to": "a", "colour": SECRET}, "colour", "invalid enum value"),
        ({"to": "a", "at": SECRET}, "at", "invalid"),
        ({"to": "a", "anything": object()}, "anything", "JSON cannot hold"),
        ({"to": "a", "anything": loop}, "anything", "JSON cannot hold"),
        ({"to": "a", "anything": 10**5000}, "anything", "JSON cannot hold"),
        ({"to": SECRET * LARGEST_PAYLOAD, "count": 1}, "to", "bytes of JSON"),
    ],
)
def test_a_bad_argument_is_refused_by_its_name(arguments: dict, field: str, problem: str):
    with pytest.raises(InvalidArgument) as caught:
        PAYLOAD.encode(arguments)
    assert caught.value.field == field
    assert f"`{field}`" in str(caught.value)
    assert problem in str(caught.value)
    assert SECRET not in str(caught.value)


def test_nothing_below_the_error_repeats_the_value():
    """A traceback prints causes and contexts too."""
    for arguments in ({"to": f"{SECRET}\ud800"}, {"to": "a", "customer": {"age": SECRET}}):
        with pytest.raises(InvalidArgument) as caught:
            PAYLOAD.encode(arguments)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_the_largest_payload_is_accepted():
    text = PAYLOAD.encode({"to": "x" * (LARGEST_PAYLOAD - len('{"to":""}'))})
    assert len(text) == LARGEST_PAYLOAD


def test_one_bad_item_of_many_is_named_by_its_position():
    with pytest.raises(InvalidArgument, match="job 1: `to` is missing"):
        PAYLOAD.encode_all([{"to": "a"}, {}])


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "null", '{"to": 5}', '{"to": "\\ud800"}', '{"to": "a", "hunter2": 1}'],
)
def test_what_another_producer_wrote_is_checked_when_the_job_runs(text: str):
    with pytest.raises(InvalidArgument):
        PAYLOAD.decode(text)


def test_absent_arguments_are_left_to_the_handlers_defaults():
    assert PAYLOAD.decode('{"to":"a"}') == {"to": "a"}


def test_a_handler_without_arguments():
    async def bare(ctx) -> None: ...

    payload = Payload(arguments_of(bare))
    assert payload.decode(payload.encode({})) == {}


@pytest.mark.parametrize(
    "result", [float("nan"), "\0", "\ud800", object(), {"a": {1, float("inf")}}]
)
def test_a_result_that_cannot_be_stored_is_refused(result: object):
    with pytest.raises(InvalidArgument, match="`result"):
        encode_result(result)


def test_no_result_is_stored_as_nothing():
    assert encode_result(None) is None
    assert encode_result({"lines": [Line("x")]}) == '{"lines":[{"sku":"x","price":1.0}]}'


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(to=texts, anything=values)
def test_any_json_value_survives(to: str, anything: Any):
    arguments = {"to": to, "anything": anything}
    assert PAYLOAD.decode(PAYLOAD.encode(arguments)) == arguments


@given(bad=st.sampled_from(["\0", "\ud800", float("nan"), float("inf")]), anything=values)
def test_a_bad_leaf_is_found_wherever_it_hides(bad: object, anything: Any):
    with pytest.raises(InvalidArgument):
        PAYLOAD.encode({"to": "a", "anything": [anything, {"x": [bad]}]})
