"""Functions that an application wants called with events."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from onecommit.domain.signature import check_function
from onecommit.errors import UsageError
from onecommit.telemetry.events import Event

E = TypeVar("E", bound=Event)
Observer: TypeAlias = Callable[[E], Awaitable[object] | None]


class Observers:
    """Which function is called with which events."""

    def __init__(self) -> None:
        self._observers: list[tuple[type[Event], Observer[Any]]] = []

    def __bool__(self) -> bool:
        return bool(self._observers)

    def add(self, event: type[E], observer: Observer[E]) -> None:
        """Call the function with events of this class and its subclasses."""
        given: object = event
        if not (inspect.isclass(given) and issubclass(given, Event)):
            raise UsageError(
                "what is observed is not a class of events",
                remedy="Name one of onecommit.telemetry.events, such as AttemptCompleted.",
            )
        check_function(observer, role="observer")
        self._observers.append((event, observer))

    def __iter__(self) -> Iterator[tuple[type[Event], Observer[Any]]]:
        return iter(self._observers)

    def observe(self, event: Event) -> bool:
        """Whether any function is called with this event."""
        return any(isinstance(event, kind) for kind, _ in self._observers)

    def want(self, event: type[Event]) -> bool:
        """Whether any function is called with events of this class or of one of its subclasses."""
        return any(
            issubclass(event, kind) or issubclass(kind, event) for kind, _ in self._observers
        )
