"""A kind of job as the hot path needs it: everything looked up once."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from onecommit.app.context import AttemptPort
from onecommit.app.job_definition import JobDefinition
from onecommit.app.registration import Functions, Registry
from onecommit.domain.attempt import Attempt
from onecommit.domain.follow_up import Transition
from onecommit.worker.threads import HandlerThreads


class Kind:
    """One registered kind. Plain attributes: a property costs as much as the rest of a no-op job."""

    __slots__ = (
        "_context",
        "call",
        "caller_owned",
        "decode",
        "definition",
        "follow_ups",
        "is_async",
        "is_plain",
        "name",
        "result_text",
        "retry",
        "timeout",
    )

    def __init__(
        self, definition: JobDefinition, *, threads: HandlerThreads, follow_ups: Functions
    ) -> None:
        self.definition = definition
        self.follow_ups = follow_ups
        self.is_plain = not definition.caller_owned and Transition.COMPLETED not in follow_ups
        """Whether nothing but a row is recorded when a handler returned nothing."""
        self.name = definition.kind
        self.caller_owned = definition.caller_owned
        self.is_async = definition.is_async
        self.retry = definition.retry
        self.timeout = definition.timeout
        self.decode = definition.payload.decode
        self.result_text = definition.result_text
        self._context = definition.context_type
        self.call: Callable[..., Coroutine[Any, Any, Any]] = definition.handler
        """Starts the handler; of a plain function, in a thread."""
        if not definition.is_async:
            self.call = partial(_call_in_thread, threads, definition.handler)

    def context(self, attempt: Attempt, port: AttemptPort, *, skew: timedelta) -> Any:
        """The first argument of the handler. `skew`: how far the database clock is ahead of ours."""
        if self.timeout is None and attempt.options is None:
            return self._context(attempt, port)
        timeout = self.timeout_of(attempt)
        deadline = None if timeout is None else datetime.now(UTC) + skew + timeout
        return self._context(attempt, port, deadline=deadline)

    def timeout_of(self, attempt: Attempt) -> timedelta | None:
        """The job's own time limit, else that of its kind."""
        if attempt.options is not None:
            own = attempt.stored_options().timeout_us
            if own is not None:
                return timedelta(microseconds=own)
        return self.timeout


def kinds_of(registry: Registry, *, threads: HandlerThreads) -> Mapping[str, Kind]:
    """Every registered kind by its name; raises for a handler whose annotations do not resolve."""
    registry.check()
    return {
        definition.kind: Kind(
            definition, threads=threads, follow_ups=registry.follow_ups.of(definition.kind)
        )
        for definition in registry
    }


def _call_in_thread(
    threads: HandlerThreads, handler: Callable[..., Any], context: Any, /, **arguments: Any
) -> Coroutine[Any, Any, Any]:
    return threads.run(partial(handler, context, **arguments))
