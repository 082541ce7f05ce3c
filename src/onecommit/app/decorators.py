"""`@app.job(...)` and `@app.caller_owned_job(...)`: from a function to a registered job."""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from onecommit.app.context import (
    CallerOwnedJobContext,
    JobContext,
    SyncCallerOwnedJobContext,
    SyncJobContext,
)
from onecommit.app.job import Job
from onecommit.app.job_definition import JobDefinition
from onecommit.app.registration import Registry
from onecommit.app.stores import Stores
from onecommit.domain.outcome import Unfinished
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import UsageError

P = ParamSpec("P")


class StorableResult(Protocol):
    """What an ordinary handler may return: anything but a finalization receipt, to a type checker."""

    def __sizeof__(self) -> int: ...


R = TypeVar("R", bound=StorableResult | None)
Finalized = TypeVar("Finalized", bound=FinalizationReceipt | Unfinished)


class _Decorator:
    def __init__(
        self,
        registry: Registry,
        stores: Stores,
        *,
        name: str | None,
        define: Callable[..., JobDefinition],
    ) -> None:
        self._registry = registry
        self._stores = stores
        self._name = name
        self._define = define

    def _register(self, handler: Callable[..., Any]) -> Job[Any, Any]:
        name = self._name if self._name is not None else getattr(handler, "__name__", "<lambda>")
        if name == "<lambda>":
            raise UsageError(
                "the handler has no name of its own", remedy='Give it one: name="send_email".'
            )
        definition = self._define(kind=name, handler=handler)
        self._registry.add(definition)
        return Job(definition, self._stores, self._registry)


class JobDecorator(_Decorator):
    """Registers an ordinary handler: the runtime completes its job after it returned."""

    @overload
    def __call__(
        self, handler: Callable[Concatenate[JobContext, P], Coroutine[Any, Any, R]]
    ) -> Job[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[SyncJobContext, P], R]) -> Job[P, R]: ...
    def __call__(self, handler: Callable[..., Any]) -> Job[Any, Any]:
        """Register the handler."""
        return self._register(handler)


class CallerOwnedJobDecorator(_Decorator):
    """Registers a handler that completes its job in its own transaction and returns the receipt."""

    @overload
    def __call__(
        self,
        handler: Callable[Concatenate[CallerOwnedJobContext, P], Coroutine[Any, Any, Finalized]],
    ) -> Job[P, Coroutine[Any, Any, Finalized]]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[SyncCallerOwnedJobContext, P], Finalized]
    ) -> Job[P, Finalized]: ...
    def __call__(self, handler: Callable[..., Any]) -> Job[Any, Any]:
        """Register the handler."""
        return self._register(handler)
