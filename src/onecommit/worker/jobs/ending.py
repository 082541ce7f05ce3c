"""What a handler's result or exception means for its attempt: pure decisions."""

import random
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from onecommit.calls.literals import json_text
from onecommit.domain.attempt import Attempt
from onecommit.domain.closing import Finish
from onecommit.domain.follow_up import FollowUp
from onecommit.domain.job import Outcome
from onecommit.domain.outcome import Cancel, Complete, Discard, RetryAfter, Snooze, Unfinished
from onecommit.domain.times import microseconds
from onecommit.domain.token import FinalizationReceipt
from onecommit.errors import DiscardError, ForgeryRefused, InvalidArgument, OnecommitError
from onecommit.worker.jobs.kind import Kind

LONGEST_MESSAGE = 1_000
"""Characters of an exception's message that are kept with the job."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The attempt completes; `detail` is the JSON to keep with it."""

    detail: str | None
    result: Any = None
    follow_ups: Iterable[FollowUp] = ()
    """As the handler gave them, unchecked."""


Ending = Completed | Finish


def ending_of_result(result: Any, attempt: Attempt, kind: Kind) -> Ending:
    """How the attempt ends after its handler returned this.

    A result that JSON cannot hold is an error of the handler like any other: it is retried, and in
    the dead letters at last, because a repaired version may be deployed meanwhile.
    """
    if isinstance(result, Unfinished):
        return finish_of_outcome(result, attempt, kind)
    if isinstance(result, FinalizationReceipt):
        return unexpected_receipt(attempt)
    complete = result if isinstance(result, Complete) else Complete(result)
    try:
        text = kind.result_text(complete.result)
    except Exception as error:  # noqa: BLE001 - a model's own code makes its JSON
        reason = _forgotten(complete.result) or error
        return failure(attempt, kind, code="invalid_result", error=reason)
    detail = None if text is None else f'{{"result":{text}}}'
    return Completed(detail, complete.result, complete.follow_ups)


def _forgotten(result: Any) -> OnecommitError | None:
    """What to say of a coroutine, which nobody awaits any more."""
    if not isinstance(result, Coroutine):
        return None
    result.close()  # or Python would complain too
    return OnecommitError(
        "the handler returned a coroutine",
        remedy="Write it as `async def` and await what it calls.",
    )


def finish_of_outcome(outcome: Unfinished, attempt: Attempt, kind: Kind) -> Finish:
    """How the attempt ends when its handler chose so itself."""
    try:
        return _chosen(outcome, attempt)
    except InvalidArgument as error:
        return failure(attempt, kind, code="invalid_result", error=error)


def _chosen(outcome: Unfinished, attempt: Attempt) -> Finish:
    match outcome:
        case Snooze(delay):
            return Finish(attempt=attempt, outcome=Outcome.SNOOZED, delay_us=_delay(delay))
        case RetryAfter(delay):
            return Finish(
                attempt=attempt, outcome=Outcome.RETRIED, delay_us=_delay(delay), code="retry_after"
            )
        case Discard(reason):
            return Finish(
                attempt=attempt, outcome=Outcome.DISCARDED, code="discarded", detail=_reason(reason)
            )
        case Cancel(reason):
            return Finish(
                attempt=attempt, outcome=Outcome.CANCELLED, code="cancelled", detail=_reason(reason)
            )
        case unreachable:
            assert_never(unreachable)


def ending_of_error(error: BaseException, attempt: Attempt, kind: Kind) -> Finish:
    """How the attempt ends after its handler raised."""
    if isinstance(error, DiscardError):
        return Finish(
            attempt=attempt, outcome=Outcome.DISCARDED, code="discarded", detail=_about(error)
        )
    if isinstance(error, ForgeryRefused):
        return Finish(
            attempt=attempt, outcome=Outcome.FAILED, code="forged_receipt", detail=_about(error)
        )
    return failure(attempt, kind, code="handler_error", error=error)


def failure(attempt: Attempt, kind: Kind, *, code: str, error: BaseException) -> Finish:
    """A counted failure, tried again by the policy of the kind while attempts are left."""
    delay_us = kind.retry.delay_us(attempt.attempt, chance=random.random())  # noqa: S311 - jitter
    return Finish(
        attempt=attempt, outcome=Outcome.RETRIED, delay_us=delay_us, code=code, detail=_about(error)
    )


def timed_out(attempt: Attempt, kind: Kind) -> Finish:
    """The handler ran longer than the job or its kind allows."""
    error = OnecommitError("the handler did not end within its time limit")
    return failure(attempt, kind, code="timeout", error=error)


def not_finalized(attempt: Attempt, kind: Kind) -> Finish:
    """A caller-owned handler returned its receipt, but the transaction behind it did not commit."""
    error = OnecommitError(
        "the handler returned a receipt whose transaction did not commit",
        remedy="Commit the transaction before the handler returns.",
    )
    return failure(attempt, kind, code="not_finalized", error=error)


def no_receipt(attempt: Attempt) -> Finish:
    """A caller-owned handler did not finalize: a mistake that no retry can repair."""
    error = OnecommitError(
        "the handler returned without the receipt of its own attempt",
        remedy="Return what ctx.complete_in_tx(...) returned.",
    )
    return Finish(attempt=attempt, outcome=Outcome.FAILED, code="no_receipt", detail=_about(error))


def unexpected_receipt(attempt: Attempt) -> Finish:
    """An ordinary handler returned the receipt of some other attempt: no retry repairs that."""
    error = OnecommitError(
        "the handler of an ordinary job returned a finalization receipt",
        remedy="Register it with @app.caller_owned_job(...).",
    )
    return Finish(
        attempt=attempt, outcome=Outcome.FAILED, code="unexpected_receipt", detail=_about(error)
    )


def undecodable(attempt: Attempt, error: InvalidArgument) -> Finish:
    """The arguments do not fit the handler's signature; another try would not change that."""
    return Finish(
        attempt=attempt,
        outcome=Outcome.DISCARDED,
        code="undecodable_arguments",
        detail=_about(error),
    )


def released(attempt: Attempt) -> Finish:
    """The attempt did not start: the job is ready again, and the attempt does not count."""
    return Finish(attempt=attempt, outcome=Outcome.SNOOZED, code="released")


def interrupted(attempt: Attempt, *, code: str) -> Finish:
    """The worker stopped the handler for its own reasons: the job is ready again at once, nothing counted."""
    return Finish(attempt=attempt, outcome=Outcome.SNOOZED, code=code)


def unknown_kind(attempt: Attempt, *, delay: timedelta, patience: timedelta) -> Finish:
    """This worker has no handler for the kind: another one may, while the job is young.

    An older job is retried and counted, so that a name nobody knows ends in the dead letters.
    """
    young = attempt.claimed_at - attempt.created_at < patience
    error = OnecommitError(
        "this worker knows no such kind of job",
        remedy="Import the module that registers it, or serve its queue by workers that do.",
    )
    return Finish(
        attempt=attempt,
        outcome=Outcome.SNOOZED if young else Outcome.RETRIED,
        delay_us=_delay(delay),
        code="unknown_kind",
        detail=_about(error),
    )


def _delay(delay: timedelta) -> int:
    whole = microseconds(delay, field="delay")
    if whole is None:
        raise InvalidArgument("`delay` is missing", field="delay")
    return whole


def _reason(reason: object) -> str:
    return json_text({"reason": _clean(str(reason))})


def _about(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an exception whose text cannot be made is still an exception
        message = ""
    return json_text({"type": type(error).__qualname__, "error": _clean(message)})


def _clean(text: str) -> str:
    """The beginning of the text, in characters that PostgreSQL and UTF-8 can hold."""
    text = text[:LONGEST_MESSAGE].replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode()
