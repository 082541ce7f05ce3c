"""How often and until when Work is tried."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

from onecommit.domain.times import is_readable
from onecommit.errors import InvalidWork

MOST_ATTEMPTS = 1_000
MOST_OFFSETS = 256
LONGEST_DURATION = timedelta(days=3_660)
"""Of every duration in a policy: ten years."""
_MICROSECOND = timedelta(microseconds=1)
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRetry:
    """`exponential-v1`: after failed attempt n the next waits min(max_delay, initial_delay * 2^(n-1)).

    No jitter; the clock is the database's. An attempt holds a lease that is renewed every `renewal`, for
    `max_lease` at most.
    """

    algorithm: Literal["exponential-v1"] = "exponential-v1"
    max_attempts: int = 8
    max_elapsed: timedelta = timedelta(hours=24)
    """From the acceptance; no attempt begins after it."""
    initial_delay: timedelta = timedelta(seconds=1)
    max_delay: timedelta = timedelta(minutes=15)
    lease: timedelta = timedelta(minutes=2)
    renewal: timedelta = timedelta(seconds=30)
    max_lease: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        algorithm: object = self.algorithm
        if algorithm != "exponential-v1":
            raise InvalidWork("`algorithm` is not exponential-v1", field="algorithm")
        if type(self.max_attempts) is not int or not 1 <= self.max_attempts <= MOST_ATTEMPTS:
            raise InvalidWork(
                f"`max_attempts` is not between 1 and {MOST_ATTEMPTS}", field="max_attempts"
            )
        durations = ("max_elapsed", "initial_delay", "max_delay", "lease", "renewal", "max_lease")
        for name in durations:
            duration_us(getattr(self, name), field=name)
        self._check_order()

    def _check_order(self) -> None:
        if self.max_delay < self.initial_delay:
            raise InvalidWork("`max_delay` is below `initial_delay`", field="max_delay")
        if self.renewal >= self.lease:
            raise InvalidWork("`renewal` is not below `lease`", field="renewal")
        if self.max_lease < self.lease:
            raise InvalidWork("`max_lease` is below `lease`", field="max_lease")

    def delay_us(self, attempt: int) -> int:
        """Microseconds to wait after the failure of `attempt`, from 1."""
        longest = self.max_delay // _MICROSECOND
        # Capped before it is shifted, as the SQL function does where numbers overflow.
        return min(longest, (self.initial_delay // _MICROSECOND) << min(attempt - 1, 62))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlan:
    """Execution policy v1 with fixed slots: attempt i + 1 is eligible at the acceptance + offsets[i].

    Its attempts are its offsets. Late slots are neither moved nor left out. No attempt begins at or after
    the acceptance + circuit.
    """

    offsets: tuple[timedelta, ...]
    circuit: timedelta

    def __post_init__(self) -> None:
        offsets: object = self.offsets
        if not isinstance(offsets, Iterable):
            raise InvalidWork("`offsets` are no list of timedeltas", field="offsets")
        object.__setattr__(self, "offsets", tuple(offsets))
        if not 1 <= len(self.offsets) <= MOST_OFFSETS:
            raise InvalidWork(f"`offsets` are not 1 to {MOST_OFFSETS}", field="offsets")
        for offset in self.offsets:
            duration_us(offset, field="offsets", zero=True)
        if self.offsets[0] != _ZERO:
            raise InvalidWork("`offsets` do not begin with zero", field="offsets")
        if any(later <= earlier for earlier, later in pairwise(self.offsets)):
            raise InvalidWork("`offsets` do not increase", field="offsets")
        duration_us(self.circuit, field="circuit")
        if self.circuit <= self.offsets[-1]:
            raise InvalidWork("`circuit` is not above the last offset", field="circuit")


def duration_us(duration: object, *, field: str, zero: bool = False) -> int:
    """A duration of a policy in microseconds, if it is one. `zero`: it may be nothing."""
    if not isinstance(duration, timedelta):
        raise InvalidWork(f"`{field}` is not a timedelta", field=field)
    _check_fineness(getattr(duration, "nanoseconds", 0), field=field)
    if not (_ZERO if zero else _MICROSECOND) <= duration <= LONGEST_DURATION:
        least = "0" if zero else "above 0"
        raise InvalidWork(
            f"`{field}` is not {least} and at most {LONGEST_DURATION.days} days", field=field
        )
    return duration // _MICROSECOND


def absolute_time(moment: object, *, field: str) -> datetime:
    """A due time or deadline in UTC, if it is one moment everywhere."""
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidWork(
            f"`{field}` is not a datetime with a time zone",
            field=field,
            remedy="Use an absolute time, the same one when the request is repeated.",
        )
    _check_fineness(getattr(moment, "nanosecond", 0), field=field)
    if not is_readable(moment):
        raise InvalidWork(f"`{field}` is not in the years 1970 to 9998", field=field)
    return moment.astimezone(UTC)


def _check_fineness(nanoseconds: int, *, field: str) -> None:
    """Types beside the standard library's count nanoseconds, which PostgreSQL would round."""
    if nanoseconds:
        raise InvalidWork(
            f"`{field}` is finer than a microsecond",
            field=field,
            remedy="Round it, the same way when the request is repeated.",
        )


DEFAULT_WORK_RETRY = WorkRetry()
