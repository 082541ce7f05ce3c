"""What is common to the arguments of all methods: texts, whole numbers and flags that the store can be given."""

import re
from typing import TypeGuard

from onecommit.errors import InvalidArgument

BIGINT, INTEGER = 63, 31
"""Bits of the largest number of these types of SQL."""
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def checked_text(value: object, *, field: str) -> str:
    """The text, or an error that names the field."""
    if not isinstance(value, str):
        raise InvalidArgument(f"`{field}` is not a text", field=field)
    if _UNSTORABLE.search(value):
        raise InvalidArgument(
            f"`{field}` holds a NUL character or a lone surrogate, which PostgreSQL cannot store",
            field=field,
        )
    return value


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it counts something; True and False are numbers only to Python."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """The same of what is measured."""
    return is_whole(value) or isinstance(value, float)


def checked_number(value: object, *, field: str, bits: int = BIGINT) -> int:
    """The whole number, if a parameter of so many bits holds it; else an error that names the field."""
    if type(value) is not int:  # True is an int too, to Python
        raise InvalidArgument(f"`{field}` is not a whole number", field=field)
    if not -(1 << bits) <= value < 1 << bits:
        raise InvalidArgument(f"`{field}` is larger than the store holds", field=field)
    return value


def checked_count(value: object, *, field: str, bits: int = INTEGER) -> int:
    """The same, if it is at least one."""
    count = checked_number(value, field=field, bits=bits)
    if count < 1:
        raise InvalidArgument(f"`{field}` is below 1", field=field)
    return count


def checked_flag(value: object, *, field: str) -> bool:
    """True or False, and nothing that only counts as one of them."""
    if not isinstance(value, bool):
        raise InvalidArgument(f"`{field}` is neither True nor False", field=field)
    return value


def checked_bytes(value: object, *, field: str) -> bytes:
    """The bytes, or an error that names the field."""
    if not isinstance(value, bytes):
        raise InvalidArgument(f"`{field}` is not bytes", field=field)
    return value
