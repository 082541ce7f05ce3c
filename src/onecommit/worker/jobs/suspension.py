"""Carrying on with a coroutine whose first step was taken by hand."""

import types
from collections.abc import Coroutine, Generator
from typing import Any


@types.coroutine
def resume(coroutine: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """Wait for what the first step yielded, then for the rest of the coroutine.

    The station steps into each handler itself, because most of the cost of a quick job is the task
    that asyncio would make for it. A handler that waits keeps the task it was stepped into from.
    """
    while True:
        try:
            yield awaited
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # noqa: BLE001 - whatever is thrown in belongs to the handler
            try:
                awaited = coroutine.throw(error)
            except StopIteration as stop:
                return stop.value
        else:
            # From here on the interpreter delegates.
            return (yield from coroutine.__await__())
