"""Text forms of arguments: whole arrays in a few passes of C code."""

from collections.abc import Sequence
from typing import Any

import msgspec

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


def optional_text(value: object) -> str | None:
    """The text of a value, NULL for None."""
    return None if value is None else str(value)


def boolean(value: bool) -> str:  # noqa: FBT001
    """PostgreSQL's text of a boolean."""
    return "t" if value else "f"


def json_text(value: Any) -> str:
    """A value of ours as JSON; arguments of users go through `domain.payload`."""
    return _json.encode(value).decode()
