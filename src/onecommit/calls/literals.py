"""Text forms of arguments: whole arrays in a few passes of C code."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from onecommit.domain.arguments import (
    BIGINT,
    checked_bytes,
    checked_flag,
    checked_number,
    checked_text,
)
from onecommit.errors import InvalidArgument

_json = msgspec.json.Encoder()
_NULL = "\x01"


def integer_array(values: Sequence[int]) -> str:
    """A PostgreSQL array literal of integers; ten times faster than joining their texts."""
    return "{" + _json.encode(values)[1:-1].decode() + "}"


def text_array(values: Sequence[str], *, field: str) -> str:
    """A PostgreSQL array literal of texts."""
    if not values:
        return "{}"
    joined = "\x00".join(values)
    if joined.count("\x00") != len(values) - 1:
        raise InvalidArgument(f"`{field}` holds a NUL character", field=field)
    escaped = joined.replace("\\", "\\\\").replace('"', '\\"').replace("\x00", '","')
    return '{"' + escaped + '"}'


def nullable_text_array(values: Sequence[str | None], *, field: str) -> str:
    """The same, where None stands for NULL."""
    if _NULL in values:
        return "{" + ",".join([_element(value, field=field) for value in values]) + "}"
    marked = [_NULL if value is None else value for value in values]
    # A quote inside an element is escaped, so only a whole element looks like this.
    return text_array(marked, field=field).replace(f'"{_NULL}"', "NULL")


def _element(value: str | None, *, field: str) -> str:
    return "NULL" if value is None else text_array([value], field=field)[1:-1]


def id_array(values: Iterable[int], *, field: str) -> str:
    """The same of ids that a caller gave."""
    given: object = values
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidArgument(f"`{field}` is not a list of whole numbers", field=field)
    return integer_array([checked_number(value, field=field) for value in given])


def optional_text(value: object, *, field: str) -> str | None:
    """A text that a caller gave, NULL for None."""
    return None if value is None else checked_text(value, field=field)


def integer(value: object, *, field: str, bits: int = BIGINT) -> str:
    """PostgreSQL's text of a whole number that a caller gave."""
    return str(checked_number(value, field=field, bits=bits))


def optional_integer(value: object, *, field: str) -> str | None:
    """The same, NULL for None."""
    return None if value is None else integer(value, field=field)


def flag(value: object, *, field: str) -> str:
    """PostgreSQL's text of a boolean that a caller gave."""
    return boolean(checked_flag(value, field=field))


def boolean(value: bool) -> str:  # noqa: FBT001
    """PostgreSQL's text of a boolean."""
    return "t" if value else "f"


def optional_bytes(value: object, *, field: str) -> str | None:
    """PostgreSQL's text of bytes that a caller gave, NULL for None."""
    return None if value is None else "\\x" + checked_bytes(value, field=field).hex()


def json_text(value: Any) -> str:
    """A value of ours as JSON; arguments of users go through `domain.payload`."""
    return _json.encode(value).decode()
