"""What makes two requests the same request; equal to the SQL function `work_fingerprint`."""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from onecommit.domain.work_policy import WorkPlan, WorkRetry
from onecommit.domain.work_request import WorkRequest

_YEAR_2000 = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NULL = b"n"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """SHA-256 over one version of the encoding."""

    schema: int
    digest: bytes


def fingerprint_of(request: WorkRequest) -> Fingerprint:
    """The fingerprint of a request: version 2 if an execution policy applies, else 1."""
    schema = 2 if request.is_planned else 1
    return Fingerprint(schema, hashlib.sha256(encoding_of(request)).digest())


def encoding_of(request: WorkRequest) -> bytes:
    """The bytes that are hashed. Both identities and the priority are left out."""
    fields = [
        _text(f"onecommit-work-{2 if request.is_planned else 1}"),
        _text(request.scope),
        _text(request.contract_name),
        _text(request.contract_version),
        _text(request.codec),
        _text(request.classification),
        _text(request.retention_id),
        _bytes(hashlib.sha256(request.payload).digest()),
        _text(request.safety.value),
        *_retry(request.retry, max_attempts=request.max_attempts),
        _time(request.due_at),
    ]
    if request.is_planned:
        fields += [_number(1), *_plan(request.plan), _time(request.deadline)]
    return b"".join(fields)


def _retry(retry: WorkRetry, *, max_attempts: int) -> Iterable[bytes]:
    yield _text(retry.algorithm)
    yield _number(max_attempts)
    yield _duration(retry.max_elapsed)
    yield _duration(retry.initial_delay)
    yield _duration(retry.max_delay)
    yield _duration(retry.lease)
    yield _duration(retry.renewal)
    yield _duration(retry.max_lease)


def _plan(plan: WorkPlan | None) -> Iterable[bytes]:
    if plan is None:
        yield from (_NULL, _NULL)
        return
    yield b"a" + struct.pack(">i", len(plan.offsets)) + b"".join(map(_duration, plan.offsets))
    yield _duration(plan.circuit)


def _text(value: str) -> bytes:
    return _tagged(b"s", value.encode("ascii"))


def _bytes(value: bytes) -> bytes:
    return _tagged(b"b", value)


def _tagged(tag: bytes, value: bytes) -> bytes:
    return tag + struct.pack(">i", len(value)) + value


def _number(value: int) -> bytes:
    return b"i" + struct.pack(">q", value)


def _duration(value: timedelta) -> bytes:
    return _number(value // _MICROSECOND)


def _time(value: datetime | None) -> bytes:
    if value is None:
        return _NULL
    return b"t" + struct.pack(">q", (value - _YEAR_2000) // _MICROSECOND)
