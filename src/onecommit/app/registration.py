"""The jobs that an application knows."""

from collections.abc import Callable, Iterator
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
from onecommit.app.follow_ups import FollowUpFunctions, cannot_follow_completion
from onecommit.app.work_registry import WorkRegistry
from onecommit.domain.attempt import Attempt
from onecommit.domain.follow_up import FollowUpFunction, Transition
from onecommit.domain.payload import Payload, encode_result
from onecommit.domain.queue import PRIORITIES, checked_name
from onecommit.domain.retry import DEFAULT_RETRY, Retry
from onecommit.domain.signature import arguments_of, check_shape, is_async
from onecommit.domain.times import microseconds
from onecommit.domain.unique import Unique
from onecommit.errors import InvalidArgument, UsageError

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


class Registry:
    """Every kind of job that an App knows."""

    def __init__(self) -> None:
        self._definitions: dict[str, JobDefinition] = {}
        self.follow_ups = FollowUpFunctions()
        self.work = WorkRegistry()

    def add(self, definition: JobDefinition) -> None:
        """Register a kind; a name stands for one handler only."""
        if definition.kind in self._definitions:
            raise UsageError(
                f"a job named {definition.kind!r} is registered already",
                remedy='Give one of them another name: @app.job(name="...").',
            )
        self.follow_ups.check(definition)
        self._definitions[definition.kind] = definition

    def follow_up(self, kind: str, transition: Transition, function: FollowUpFunction) -> None:
        """Register a follow-up function; the kind itself may be registered before or after it."""
        definition = self.get(kind)
        if (
            definition is not None
            and definition.caller_owned
            and transition is Transition.COMPLETED
        ):
            raise cannot_follow_completion(kind)
        self.follow_ups.add(kind, transition, function)

    def get(self, kind: str) -> JobDefinition | None:
        """The definition of a kind, if this application knows it."""
        return self._definitions.get(kind)

    def __iter__(self) -> Iterator[JobDefinition]:
        return iter(self._definitions.values())

    def __len__(self) -> int:
        return len(self._definitions)

    @property
    def queues(self) -> set[str]:
        """The queues that the registered jobs go to by default."""
        return {definition.queue for definition in self}

    def check(self) -> None:
        """Resolve every annotation now, so that a worker does not find a mistake at the first job."""
        for definition in self:
            _ = definition.payload
        self.work.check()
        unknown = sorted(self.follow_ups.kinds - self._definitions.keys())
        if unknown:
            raise UsageError(
                f"follow-up functions are registered for {', '.join(unknown)}, but no such job is",
                remedy="Import the module that registers the job, or repair the name.",
            )


def check_bounds(
    *,
    priority: int | None,
    max_attempts: int | None,
    timeout: timedelta | None,
    unique: Unique | None,
) -> None:
    """Raise for an option outside of what the store accepts, by its name."""
    if priority is not None and not _is_whole(priority, within=PRIORITIES):
        raise InvalidArgument("`priority` is not 1, 2, 3 or 4", field="priority")
    if max_attempts is not None and not _is_whole(max_attempts, within=range(1, MOST_ATTEMPTS + 1)):
        raise InvalidArgument(
            f"`max_attempts` is not between 1 and {MOST_ATTEMPTS}", field="max_attempts"
        )
    if timeout is not None and not microseconds(timeout, field="timeout"):
        raise InvalidArgument("`timeout` is zero", field="timeout")
    if unique is not None and not isinstance(unique, Unique):
        raise InvalidArgument(
            "`unique` is not a Unique", field="unique", remedy='Write Unique(by=("to",)).'
        )


def _is_whole(number: object, *, within: range) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number in within
