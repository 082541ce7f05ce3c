"""Array literals; tests/store/test_encoding.py sends them to a server."""

import pytest

from onecommit.calls.literals import integer_array, nullable_text_array, text_array
from onecommit.errors import InvalidArgument


def test_integers():
    assert integer_array([]) == "{}"
    assert integer_array([1, -2, 2**63 - 1]) == "{1,-2,9223372036854775807}"


def test_texts():
    assert text_array([], field="x") == "{}"
    assert text_array(["a", "", 'q"', "b\\", "NULL", "{,}"], field="x") == (
        '{"a","","q\\"","b\\\\","NULL","{,}"}'
    )


def test_texts_and_nulls():
    assert nullable_text_array([], field="x") == "{}"
    assert nullable_text_array([None, None], field="x") == "{NULL,NULL}"
    assert nullable_text_array([None, "NULL", ""], field="x") == '{NULL,"NULL",""}'
    assert nullable_text_array(["", ""], field="x") == '{"",""}'
    assert nullable_text_array([None, "\x01", '"\x01"'], field="x") == '{NULL,"\x01","\\"\x01\\""}'


def test_a_nul_character_cannot_shift_the_elements():
    for encode in (text_array, nullable_text_array):
        with pytest.raises(InvalidArgument, match="`x`"):
            encode(["a", "b\0c"], field="x")
