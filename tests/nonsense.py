"""Values that are wrong for an argument of each sort, as a mistake or an unchecked form field brings them."""

import reprlib
from datetime import UTC, datetime, timedelta
from typing import Any

SECRET = "hunter2"
"""Stands in texts that no error may repeat."""
NO_TEXT = (5, b"x", [SECRET], f"{SECRET}\0", f"{SECRET}\ud800", object())
NO_NAME = (None, "", "x" * 201, *NO_TEXT)
NO_NUMBER = ("abc", "7", b"7", 1.0, float("nan"), True, [1], 2**63, -(2**63) - 1, 10**30, 10**5000)
NO_LIMIT = (*NO_NUMBER, None, 0, -1, 2**31, 1_000_001)
NO_FLAG = ("no", 0, 1, None, [])
NO_TIME = (
    None,
    "2026-01-01",
    5,
    datetime.fromisoformat("2026-01-01"),
    datetime.max.replace(tzinfo=UTC),
)
NO_DURATION = (5, "soon", timedelta(-1), timedelta.min, timedelta.max)
NO_UUID = (None, 5, "abc", "", f"{SECRET}\0", f"{SECRET}\ud800", b"0" * 16)
NO_IDS = (None, 5, "123", b"12", [None], ["7"], [1.5], [True], [2**63], [1, 10**30], [[1]])
NO_JSON = (
    object(), {1, object()}, float("inf"), f"{SECRET}\0", f"{SECRET}\ud800", {"a": f"{SECRET}\0"}, "x" * 2_000_000,
)  # fmt: skip


def shown(value: Any) -> str:
    """What was wrong; Python refuses to write very long numbers."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return f"a very long number in {type(value).__name__}"
