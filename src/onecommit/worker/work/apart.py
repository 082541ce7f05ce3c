"""The application's code in a task of its own: what it does to its task does not reach its attempt."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from onecommit.worker import forking

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The code came to its end."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """The code ended by an exception, whichever."""

    error: BaseException


Exit = Returned[T] | Raised


class Apart(Generic[T]):
    """Code that has been started; its cancellations, those it leaves behind too, end in its own task."""

    def __init__(self, code: Callable[[], Awaitable[T]], *, name: str) -> None:
        # Not the task's result: a task that cancels itself and returns is cancelled, and has none.
        self._exit: Exit[T] | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(code), name=name)

    def cancel(self) -> None:
        """Ask the code to stop; nothing if it has ended."""
        self._task.cancel()

    async def ended(self) -> Exit[T] | None:
        """How the code ended; None if it was cancelled before it began."""
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._task.done():
                raise
        return self._exit

    async def _run(self, code: Callable[[], Awaitable[T]]) -> None:
        depth = forking.depth
        try:
            self._exit = Returned(await code())
        except BaseException as error:  # noqa: BLE001 - every exit is one of the attempt's, GeneratorExit too
            self._exit = Raised(error)
        if forking.depth != depth:
            forking.end_child(self._exit.error if isinstance(self._exit, Raised) else None)
