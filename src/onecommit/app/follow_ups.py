"""Asking follow-up functions when an attempt ends, and what they may answer."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from onecommit.app.job_definition import JobDefinition
from onecommit.app.registration import Registry
from onecommit.calls.follow_ups import ClosedJob
from onecommit.domain.attempt import Attempt
from onecommit.domain.follow_up import (
    FollowUp,
    FollowUpFunction,
    JobTransition,
    Transition,
)
from onecommit.errors import InvalidArgument, LanesExhausted, UsageError

REFUSALS = (InvalidArgument, LanesExhausted)
"""What the store says of follow-ups that it does not take."""


def ask(
    functions: Iterable[FollowUpFunction], about: JobTransition, *, registry: Registry
) -> tuple[FollowUp, ...]:
    """What follows. Raises whatever a function raises, and UsageError for what is no follow-up."""
    return tuple(
        follow_up
        for function in functions
        for follow_up in checked(function(about), registry=registry)
    )


def checked(found: object, *, registry: Registry) -> list[FollowUp]:
    """The follow-ups in what a function or a handler gave, of kinds of this App."""
    match found:
        case None:
            return []
        case FollowUp():
            follow_ups = [found]
        case str() | bytes() | Mapping():
            raise _no_follow_up(found)
        case Iterable():
            follow_ups = list(found)
        case _:
            raise _no_follow_up(found)
    for follow_up in follow_ups:
        if not isinstance(follow_up, FollowUp):
            raise _no_follow_up(follow_up)
        if follow_up.definition is None or registry.get(follow_up.kind) is not follow_up.definition:
            raise UsageError(
                f"the follow-up {follow_up.kind} is not a job of this App",
                remedy="Make it with `follow_up(...)` of a job that is registered here.",
            )
    return follow_ups


def told_of(
    job: Attempt | ClosedJob,
    transition: Transition,
    *,
    definition: JobDefinition,
    result: object = None,
    code: str | None = None,
) -> JobTransition:
    """What follow-up functions are told of the end of this attempt."""
    return JobTransition(
        transition=transition,
        job_id=job.job_id,
        kind=job.kind,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        run_lease=job.run_lease,
        arguments=_arguments_of(definition, job.args or "{}"),
        result=result,
        code=code,
    )


def _arguments_of(definition: JobDefinition, args: str) -> Mapping[str, Any]:
    """The arguments of a job as its handler gets them; the JSON values if they do not fit it."""
    payload = definition.payload
    try:
        return {**payload.defaults, **payload.decode(args)}
    except Exception:  # noqa: BLE001 - a model's own code reads its JSON
        values = msgspec.json.decode(args)
        return values if isinstance(values, dict) else {}


def result_in(detail: str | None) -> Any:
    """The result in what the store keeps about a completed job."""
    kept = None if detail is None else msgspec.json.decode(detail)
    return kept.get("result") if isinstance(kept, dict) else None


def _no_follow_up(found: object) -> UsageError:
    return UsageError(
        f"a {type(found).__qualname__} was given as a follow-up",
        remedy="Return `job.follow_up(...)`, several of them in a list, or None.",
    )
