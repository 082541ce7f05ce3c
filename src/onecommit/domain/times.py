"""Durations and moments that the store takes and every client can read back."""

from datetime import UTC, datetime, timedelta

from onecommit.domain.arguments import is_number
from onecommit.errors import InvalidArgument

LONGEST_DURATION = timedelta(days=36_525)
"""A century: what the store takes for a delay or a time limit."""
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


def microseconds(duration: timedelta | None, *, field: str) -> int | None:
    """A duration as SQL takes it, or an error that names the field."""
    if duration is None:
        return None
    if not isinstance(duration, timedelta):
        raise InvalidArgument(f"`{field}` is not a timedelta", field=field)
    if duration < timedelta(0):
        raise InvalidArgument(f"`{field}` is negative", field=field)
    if duration > LONGEST_DURATION:
        raise InvalidArgument(f"`{field}` is longer than 100 years", field=field)
    return duration // timedelta(microseconds=1)


def checked_seconds(seconds: object, *, field: str) -> float:
    """A time in seconds above zero, or an error that names the field."""
    if not is_number(seconds):
        raise InvalidArgument(f"`{field}` is not a number of seconds", field=field)
    if not 0 < seconds <= LONGEST_DURATION.total_seconds():
        raise InvalidArgument(f"`{field}` is not above 0 and at most 100 years", field=field)
    return seconds


def is_readable(moment: datetime) -> bool:
    """Whether every client can read it back, in any time zone: if it is in the years 1970 to 9998."""
    return _FIRST <= moment <= _LAST
