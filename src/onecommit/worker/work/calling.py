"""The application's code in an attempt: what reads its payload, and its executor."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from onecommit.app.work_contract import CODEC
from onecommit.app.work_invocation import SyncWorkInvocation, WorkInvocation
from onecommit.domain.work_attempt import ClaimedWork, WorkEnd
from onecommit.errors import InvalidWork
from onecommit.worker.threads import HandlerThreads
from onecommit.worker.work import ending
from onecommit.worker.work.apart import Apart
from onecommit.worker.work.contracts import AnyWork
from onecommit.worker.work.invocations import Invocation, Invocations

T = TypeVar("T")


class Calling:
    """Starts each part apart from the attempt."""

    def __init__(self, invocations: Invocations, threads: HandlerThreads) -> None:
        self._invocations = invocations
        self._threads = threads

    def prepare(self, invocation: Invocation, work: AnyWork) -> Apart[Any]:
        """Read the payload as the contract's type; InvalidWork for what this contract is not."""
        return _start(invocation, partial(_prepared, invocation.claimed, work))

    def execute(self, invocation: Invocation, work: AnyWork, payload: Any) -> Apart[WorkEnd]:
        """Call the executor, and read what it returned."""
        return _start(invocation, partial(self._executed, invocation, work, payload))

    async def _executed(self, invocation: Invocation, work: AnyWork, payload: Any) -> WorkEnd:
        executor = work.runs
        if executor is None:
            raise AssertionError("only Work with an executor is discovered")
        if executor.is_async:
            value = await executor.function(self._handle(WorkInvocation, invocation), payload)
        else:
            handle = self._handle(SyncWorkInvocation, invocation)
            value = await self._threads.run(partial(executor.function, handle, payload))
        return ending.of_value(value, contract=work.contract, executor=executor)

    def _handle(self, kind: type[Any], invocation: Invocation) -> Any:
        claimed = invocation.claimed
        return kind(
            claimed.fence,
            self._invocations,
            activity_id=claimed.activity_id,
            command_id=claimed.command_id,
            accepted_at=claimed.accepted_at,
            deadline=claimed.deadline,
        )


async def _prepared(claimed: ClaimedWork, work: AnyWork) -> Any:
    contract = work.contract
    if claimed.codec != CODEC or claimed.safety is not contract.safety:
        raise InvalidWork("it was accepted under another contract", field="contract")
    if claimed.exit_aware is not contract.exits:
        raise InvalidWork("it was accepted under another form of executor", field="contract")
    return contract.decode_payload(claimed.payload)


def _start(invocation: Invocation, code: Callable[[], Awaitable[T]]) -> Apart[T]:
    return Apart(code, name=f"onecommit:code of {invocation.claimed.contract_name}")
