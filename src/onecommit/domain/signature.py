"""The arguments that a handler takes, read from its signature."""

import builtins
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from types import SimpleNamespace
from typing import Any

from onecommit.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerArgument:
    """One argument of a handler; `default` is `Parameter.empty` for a required one."""

    name: str
    type: Any
    default: Any = Parameter.empty

    @property
    def required(self) -> bool:
        """Whether every job has to bring it."""
        return self.default is Parameter.empty


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await, seen through decorators on either side."""
    return any(map(inspect.iscoroutinefunction, (function, inspect.unwrap(function))))


def check_function(function: object, *, role: str) -> None:
    """Raise unless it is something to call whose answer is not a generator, which nobody would run."""
    if not callable(function):
        raise UsageError(
            f"the {role} is a {type(function).__qualname__}, not a function",
            remedy="Put the decorator above a function.",
        )
    if _yields(function):
        raise UsageError(
            f"the {role} yields, and nothing would run it", remedy="Return one answer."
        )


def _yields(function: Callable[..., Any]) -> bool:
    plain = inspect.unwrap(function)
    return inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain)


def check_shape(handler: Callable[..., Any]) -> None:
    """Raise unless the handler is a function that takes the context first and then named arguments."""
    if inspect.isclass(handler) or not hasattr(handler, "__qualname__"):
        raise UsageError(
            f"the handler is a {type(handler).__qualname__}, not a function",
            remedy="Write a function that calls it: its signature says what a job may bring.",
        )
    name = handler.__qualname__
    if _yields(handler):
        raise UsageError(
            f"the handler {name} yields, and nothing would run it",
            remedy="Return one result; report what comes before with ctx.set_progress.",
        )
    parameters = list(inspect.signature(handler).parameters.values())
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional or _is_argument(parameters[0]):
        raise UsageError(
            f"the handler {name} takes no context",
            remedy="Make the context its first parameter: `ctx: JobContext`.",
        )
    for parameter in parameters[1:]:
        if parameter.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            raise UsageError(
                f"the handler {name} takes {parameter}, which has no name in a job",
                remedy="Give each argument a name of its own.",
            )


def _is_argument(first: Parameter) -> bool:
    """Whether what should be the context is annotated as a value: `name: str`, `ids: list[int]`."""
    kind = first.annotation
    if isinstance(kind, str):  # postponed: from __future__ import annotations
        kind = getattr(builtins, kind.partition("[")[0], Any)
    return getattr(kind, "__module__", "") == "builtins" and kind is not object


def arguments_of(handler: Callable[..., Any]) -> tuple[HandlerArgument, ...]:
    """The arguments after the context, with their types resolved."""
    parameters = list(inspect.signature(handler).parameters.values())[1:]
    # Without the context's own annotation: it may be imported for type checkers only.
    own = {
        parameter.name: parameter.annotation
        for parameter in parameters
        if parameter.annotation is not Parameter.empty
    }
    try:
        hints = typing.get_type_hints(
            SimpleNamespace(__annotations__=own),
            globalns=getattr(inspect.unwrap(handler), "__globals__", {}),
            include_extras=True,
        )
    except NameError as error:
        raise UsageError(
            f"an annotation of {handler.__qualname__} names {error.name}, which is not defined",
            remedy="Define or import it in the handler's module, at run time too.",
        ) from error
    return tuple(
        HandlerArgument(name=p.name, type=hints.get(p.name, Any), default=p.default)
        for p in parameters
    )
