"""What counts as the same job."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecommit import InvalidArgument, Unique

ARGUMENTS = {"to": "a", "subject": "b"}


def key(unique: Unique, arguments=ARGUMENTS, *, kind="send", queue="email") -> str:
    return unique.key_of(arguments, kind=kind, queue=queue).key


def test_the_named_arguments_decide():
    unique = Unique(by=("to",))
    assert key(unique) == key(unique, {"to": "a", "subject": "other"})
    assert key(unique) != key(unique, {"to": "other", "subject": "b"})


def test_without_names_every_argument_decides():
    assert key(Unique()) == key(Unique(), {"subject": "b", "to": "a"})
    assert key(Unique()) != key(Unique(), {"to": "a", "subject": "other"})


def test_kind_and_queue_are_part_of_the_key():
    keys = {
        key(Unique()),
        key(Unique(), kind="other"),
        key(Unique(), queue="other"),
        key(Unique(), kind="email", queue="send"),
    }
    assert len(keys) == 4


@given(st.dictionaries(st.text(), st.integers() | st.text(), max_size=5), st.randoms())
def test_the_order_of_keys_inside_a_value_does_not_matter(value, random):
    shuffled = list(value.items())
    random.shuffle(shuffled)
    assert key(Unique(), {"x": value}) == key(Unique(), {"x": dict(shuffled)})


def test_a_window_travels_in_microseconds():
    windowed = Unique(within=timedelta(hours=1)).key_of({}, kind="k", queue="q")
    assert windowed.window_us == 3_600_000_000
    assert Unique().key_of({}, kind="k", queue="q").window_us is None


@pytest.mark.parametrize(
    "wrong", [{"by": "to"}, {"within": timedelta(0)}, {"within": 5}, {"within": timedelta.max}]
)
def test_a_rule_that_makes_no_sense_is_refused_by_name(wrong):
    with pytest.raises(InvalidArgument) as caught:
        Unique(**wrong)
    assert caught.value.field in wrong


def test_an_argument_that_the_job_does_not_take_is_named():
    with pytest.raises(InvalidArgument, match="recipient") as caught:
        Unique(by=("recipient",)).key_of({"to": 1}, kind="send", queue="q")
    assert caught.value.field == "unique"
