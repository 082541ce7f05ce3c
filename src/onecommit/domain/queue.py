"""Queues as operators see them, and the rules for names."""

import re
from dataclasses import dataclass

from onecommit.errors import InvalidArgument

LONGEST_NAME = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
PRIORITIES = range(1, 5)
"""1 is first; 2 is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue and what lies in it."""

    queue: str
    paused: bool
    lanes: int
    ready: int
    scheduled: int
    dead: int
    running: int
    caller_owned: bool
    """Whether it accepts caller-owned completion: see `FeatureDisabled`."""
    blocked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFinalization:
    """Whether a queue accepts caller-owned completion, and who stands in the way of it."""

    queue: str
    enabled: bool
    waiting_for: tuple[str, ...]
    """Names of live workers of the queue that do not advertise the capability."""
    disabled: bool
    """Whether an operator has disabled it: then no worker enables it."""


def checked_name(name: object, *, field: str) -> str:
    """The name of a queue or kind, or an error that names the field."""
    if not isinstance(name, str):
        raise InvalidArgument(f"`{field}` is not a text", field=field)
    if not name or len(name) > LONGEST_NAME:
        raise InvalidArgument(
            f"`{field}` is {'empty' if not name else f'{len(name)} characters long'}",
            field=field,
            remedy=f"A name has 1 to {LONGEST_NAME} characters.",
        )
    if _CONTROL.search(name):
        raise InvalidArgument(
            f"`{field}` holds a control character or a lone surrogate", field=field
        )
    return name
