"""What makes two jobs the same job."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from onecommit.domain.job import UniqueKey
from onecommit.domain.queue import checked_name
from onecommit.domain.times import microseconds
from onecommit.errors import InvalidArgument

_canonical = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """Jobs of one kind in one queue are the same if these arguments are equal.

    `by` names the arguments, all of them if it is empty. A job stands in the way of another one until it
    has ended; with `within`, at least for that time from its enqueueing, even if it has ended.
    """

    by: tuple[str, ...] = ()
    within: timedelta | None = None

    def __post_init__(self) -> None:
        by: object = self.by
        if isinstance(by, str):  # a text is a sequence of names too, to Python
            raise InvalidArgument(
                "`by` is a text", field="by", remedy='Write a tuple of names: by=("to",).'
            )
        if not isinstance(by, Collection) or isinstance(by, bytes):
            raise InvalidArgument("`by` is not a tuple of names", field="by")
        for name in by:
            checked_name(name, field="by")
        if microseconds(self.within, field="within") == 0:
            raise InvalidArgument("`within` is not positive", field="within")

    def key_of(self, arguments: Mapping[str, Any], *, kind: str, queue: str) -> UniqueKey:
        """The key of a job with these arguments, given as JSON values, defaults included."""
        unknown = [name for name in self.by if name not in arguments]
        if unknown:
            raise InvalidArgument(
                f"`unique` of {kind} names {', '.join(unknown)}, which it does not take",
                field="unique",
            )
        named = {name: arguments[name] for name in self.by or arguments}
        digest = hashlib.sha256(_canonical.encode([queue, kind, named])).hexdigest()
        return UniqueKey(key=digest, window_us=microseconds(self.within, field="within"))
