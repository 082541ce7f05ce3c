"""What an event is, and where it goes if nobody says otherwise."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

logger = logging.getLogger("onecommit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something an operator may want to know."""

    name: ClassVar[str]
    level: ClassVar[int] = logging.INFO


Emit = Callable[[Event], None]


def log_event(event: Event) -> None:
    """Write the event to the ``onecommit`` logger."""
    if logger.isEnabledFor(event.level):
        logger.log(event.level, "%s", line_of(event), extra={"event": event})


def line_of(event: Event) -> str:
    """``name key=value …``."""
    pairs = [f"{field.name}={getattr(event, field.name)}" for field in fields(event)]
    return " ".join([event.name, *pairs])
