"""One kind of job, and what holds for every job of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from onecommit.app.context import (
    AttemptPort,
    CallerOwnedJobContext,
    JobContext,
    SyncCallerOwnedJobContext,
    SyncJobContext,
)
from onecommit.domain.arguments import is_whole
from onecommit.domain.attempt import Attempt
from onecommit.domain.payload import Payload, encode_result
from onecommit.domain.queue import PRIORITIES, checked_name
from onecommit.domain.retry import DEFAULT_RETRY, Retry
from onecommit.domain.signature import arguments_of, check_shape, is_async
from onecommit.domain.times import microseconds
from onecommit.domain.unique import Unique
from onecommit.errors import InvalidArgument

DEFAULT_PRIORITY = 2
DEFAULT_MAX_ATTEMPTS = 20
MOST_ATTEMPTS = 32_767

AnyContext = JobContext | SyncJobContext | CallerOwnedJobContext | SyncCallerOwnedJobContext


# No slots: cached properties live in the instance.
@dataclass(frozen=True, kw_only=True)
class JobDefinition:
    """One kind of job: its handler, and what holds for every job of the kind."""

    kind: str
    queue: str
    handler: Callable[..., Any]
    caller_owned: bool
    priority: int = DEFAULT_PRIORITY
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    timeout: timedelta | None = None
    retry: Retry = DEFAULT_RETRY
    unique: Unique | None = None

    def __post_init__(self) -> None:
        checked_name(self.kind, field="name")
        checked_name(self.queue, field="queue")
        check_bounds(
            priority=self.priority,
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            unique=self.unique,
        )
        if not isinstance(self.retry, Retry):
            raise InvalidArgument("`retry` is not a Retry", field="retry")
        check_shape(self.handler)

    @cached_property
    def is_async(self) -> bool:
        """Whether the handler is awaited; a plain function runs in a thread."""
        return is_async(self.handler)

    @cached_property
    def payload(self) -> Payload:
        """How the arguments travel; the annotations are resolved at first use."""
        payload = Payload(arguments_of(self.handler))
        unknown = set(self.unique.by if self.unique else ()) - set(payload.names)
        if unknown:
            raise InvalidArgument(
                f"`unique` of {self.kind} names {', '.join(sorted(unknown))}, which it does not take",
                field="unique",
            )
        return payload

    def context(
        self, attempt: Attempt, port: AttemptPort, *, deadline: datetime | None = None
    ) -> AnyContext:
        """The first argument of the handler for this attempt."""
        return self.context_type(attempt, port, deadline=deadline)

    def result_text(self, result: Any) -> str | None:
        """The JSON text of what the handler returned."""
        return encode_result(result)

    @cached_property
    def context_type(self) -> type[AnyContext]:
        """What the first argument of the handler is."""
        if self.caller_owned:
            return CallerOwnedJobContext if self.is_async else SyncCallerOwnedJobContext
        return JobContext if self.is_async else SyncJobContext


def check_bounds(
    *,
    priority: int | None,
    max_attempts: int | None,
    timeout: timedelta | None,
    unique: Unique | None,
) -> None:
    """Raise for an option outside of what the store accepts, by its name."""
    if priority is not None and not (is_whole(priority) and priority in PRIORITIES):
        raise InvalidArgument("`priority` is not 1, 2, 3 or 4", field="priority")
    if max_attempts is not None and not (
        is_whole(max_attempts) and max_attempts in range(1, MOST_ATTEMPTS + 1)
    ):
        raise InvalidArgument(
            f"`max_attempts` is not between 1 and {MOST_ATTEMPTS}", field="max_attempts"
        )
    if timeout is not None and not microseconds(timeout, field="timeout"):
        raise InvalidArgument("`timeout` is zero", field="timeout")
    if unique is not None and not isinstance(unique, Unique):
        raise InvalidArgument(
            "`unique` is not a Unique", field="unique", remedy='Write Unique(by=("to",)).'
        )
