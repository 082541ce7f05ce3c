"""How an executor ended, as the store is told."""

import re
from typing import Any, assert_never

from onecommit.app.work import Executor
from onecommit.app.work_contract import CODEC, WorkContract
from onecommit.domain.work_attempt import WorkEnd, WorkEvent
from onecommit.domain.work_exit import (
    AmbiguousExternalOutcome,
    FailedTerminal,
    RetryBeforeEffect,
    Succeeded,
    WorkExit,
)
from onecommit.errors import InvalidWork, WorkExitCompatibilityError

_EXITS = (Succeeded, RetryBeforeEffect, FailedTerminal, AmbiguousExternalOutcome)

ADMISSION_LOST = WorkEnd(event=WorkEvent.RETRY_BEFORE_EFFECT, code="admission_reply_lost")
"""Nobody knows whether the invocation was admitted; that it never began is known."""
DRAINING = WorkEnd(event=WorkEvent.RETRY_BEFORE_EFFECT, code="worker_draining")
"""Claimed, and not begun."""


def stopped_before(code: str) -> WorkEnd:
    """The end of an attempt that was stopped when it was admitted and the provider not yet called."""
    return WorkEnd(event=WorkEvent.RETRY_BEFORE_EFFECT, code=code)


def of_value(value: Any, *, contract: WorkContract, executor: Executor) -> WorkEnd:
    """The end of an executor that returned.

    Raises:
        WorkExitCompatibilityError: It returned what its form does not return, or a result that the
            contract does not know. The provider was called, so nobody knows what happened.
    """
    is_exit = isinstance(value, _EXITS)
    if is_exit is not executor.returns_exit:
        raise WorkExitCompatibilityError(
            f"the executor of {contract.name}/{contract.version} returned "
            + ("an exit" if is_exit else "no exit")
        )
    return _of_exit(value, contract) if is_exit else _success(value, contract)


def of_error(error: BaseException, *, code: str | None) -> WorkEnd:
    """The end of an executor that raised; its class is told, never its text."""
    if isinstance(error, WorkExitCompatibilityError):
        return WorkEnd(event=WorkEvent.COMPATIBILITY, code="exit_compatibility")
    return WorkEnd(event=WorkEvent.EXCEPTION, code=code or _class_name(error))


def _of_exit(value: WorkExit[Any], contract: WorkContract) -> WorkEnd:
    match value:
        case Succeeded(result):
            return _success(result, contract)
        case RetryBeforeEffect(code):
            return WorkEnd(event=WorkEvent.RETRY_BEFORE_EFFECT, code=code)
        case FailedTerminal(code):
            return WorkEnd(event=WorkEvent.FAILED_TERMINAL, code=code)
        case AmbiguousExternalOutcome(code):
            return WorkEnd(event=WorkEvent.AMBIGUOUS, code=code)
        case _:
            assert_never(value)


def _success(result: Any, contract: WorkContract) -> WorkEnd:
    try:
        encoded = contract.encode_result(result)
    except InvalidWork as error:
        raise WorkExitCompatibilityError(
            f"the executor of {contract.name}/{contract.version} returned a result that its contract"
            " does not know"
        ) from error
    return WorkEnd(event=WorkEvent.SUCCEEDED, result=encoded, codec=CODEC)


def _class_name(error: BaseException) -> str:
    name = re.sub(r"[^A-Za-z0-9._:-]", "_", type(error).__qualname__)[-120:]
    return f"e.{name}"[:120] if name.lower().startswith("asdur") else name
