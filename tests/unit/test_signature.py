"""Handlers are registered with a context first and named arguments after it."""

import functools
from typing import TYPE_CHECKING, Any

import pytest

from onecommit.domain.signature import arguments_of, check_shape
from onecommit.errors import UsageError

if TYPE_CHECKING:
    from onecommit import JobContext


def test_the_contexts_annotation_need_not_exist_at_run_time():
    async def handler(ctx: "JobContext", to: "str", /, *, n: int = 3, x=None) -> None: ...

    del handler.__annotations__["return"]
    to, n, x = arguments_of(handler)
    assert (to.name, to.type, to.required) == ("to", str, True)
    assert (n.name, n.type, n.default) == ("n", int, 3)
    assert (x.type, x.default) == (Any, None)


def test_an_undefined_annotation_is_named():
    async def handler(ctx, to: "Missing") -> None: ...  # noqa: F821

    with pytest.raises(UsageError, match="names Missing, which is not defined"):
        arguments_of(handler)


def test_a_wrapped_handler_keeps_its_signature():
    def traced(function):
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return wrapper

    @traced
    async def handler(ctx, to: str) -> None: ...

    check_shape(handler)
    assert [argument.name for argument in arguments_of(handler)] == ["to"]


async def no_context() -> None: ...
async def only_keywords(*, ctx) -> None: ...
async def many(ctx, *to: str) -> None: ...
async def open_ended(ctx, **to: str) -> None: ...


@pytest.mark.parametrize("handler", [no_context, only_keywords, many, open_ended])
def test_any_other_shape_is_refused_with_advice(handler):
    with pytest.raises(UsageError) as caught:
        check_shape(handler)
    assert handler.__name__ in str(caught.value)
    assert caught.value.remedy
