"""The host's word on what an operator may do, asked before anything else."""

import inspect
from collections.abc import Awaitable, Callable

from onecommit.domain.signature import check_function
from onecommit.domain.work_command import OperatorAction
from onecommit.errors import OperatorNotAuthorized, UsageError

AsyncAuthorization = Callable[[OperatorAction], Awaitable[bool]]
SyncAuthorization = Callable[[OperatorAction], bool]


class Authorization:
    """Holds the function that the application registered with `@app.authorize`."""

    def __init__(self) -> None:
        self._function: AsyncAuthorization | SyncAuthorization | None = None

    def use(self, function: AsyncAuthorization | SyncAuthorization) -> None:
        """Ask this function from now on."""
        check_function(function, role="function that authorizes operators")
        if self._function is not None:
            raise UsageError(
                "the App already has a function that authorizes operators",
                remedy="Register one, and let it decide by `action.operation`.",
            )
        self._function = function

    async def async_check(self, action: OperatorAction) -> None:
        """Raise unless the host allows the action.

        Raises:
            OperatorNotAuthorized: It said anything but True.
            UsageError: Nothing is registered.
        """
        answer = self._ask(action)
        if inspect.isawaitable(answer):
            answer = await answer
        _refuse_unless(answer)

    def sync_check(self, action: OperatorAction) -> None:
        """The same for code that does not await."""
        answer = self._ask(action)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise UsageError(
                "the App's function that authorizes operators is async",
                remedy="Use `app.works` instead of `app.sync.works`, or register a `def` function.",
            )
        _refuse_unless(answer)

    def _ask(self, action: OperatorAction) -> Awaitable[bool] | bool:
        if self._function is None:
            raise UsageError(
                "nobody is authorized to give commands about Work",
                remedy="Register a function that decides who is: @app.authorize.",
            )
        return self._function(action)


def _refuse_unless(answer: object) -> None:
    # Exactly True: a truthy object is as likely a mistake.
    if answer is not True:
        raise OperatorNotAuthorized("the application does not allow this operator to do it")
