"""What the runtime says about attempts of Work."""

import logging
from dataclasses import dataclass
from typing import TypedDict

from onecommit.telemetry.event import Event


class WorkNames(TypedDict):
    """The fields by which an event names an attempt of Work."""

    work: int
    contract: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEvent(Event):
    """Something about one attempt of Work."""

    work: int
    contract: str
    """Name and version: ``billing.charge/1``."""
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAttemptEnded(WorkEvent):
    """The end of an attempt is recorded."""

    name = "work.ended"
    level = logging.DEBUG
    event: str
    """What the attempt said: succeeded, exception, …"""
    outcome: str
    """completed; replayed; quarantined: it came too late and changed nothing; refused."""
    state: str | None
    """Where the Work stands now."""
    code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSuspended(WorkAttemptEnded):
    """The end of an attempt left Work that waits for an operator."""

    name = "work.suspended"
    level = logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAttemptFailed(WorkEvent):
    """An executor, or the code that reads a payload, raised, or returned what its contract does not know."""

    name = "work.failed"
    level = logging.WARNING
    failure: str
    """The class of the exception."""
    frames: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAttemptRefused(WorkEvent):
    """An attempt got no permit or no admission, so the provider was not called."""

    name = "work.refused"
    level = logging.WARNING
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkMoved(WorkEvent):
    """A claim found Work whose lease, time or epoch had ended, and decided it."""

    name = "work.moved"
    level = logging.WARNING
    code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCompletionFenced(WorkEvent):
    """The epoch was rotated while the provider was called: what it said could not be recorded."""

    name = "work.completion_fenced"
    level = logging.CRITICAL
    digest: str
    """SHA-256 of the encoded result."""
