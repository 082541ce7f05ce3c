"""When a failed attempt is tried again."""

from dataclasses import dataclass
from datetime import timedelta

from onecommit.domain.arguments import is_number
from onecommit.domain.times import microseconds
from onecommit.errors import InvalidArgument

LONGEST_DELAY = timedelta(hours=24)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Exponential back-off: `first`, then `factor` times longer each time, at most `longest`.

    `jitter` is the share of a delay that chance may take away, so that jobs which failed together
    do not return together.
    """

    first: timedelta = timedelta(seconds=2)
    factor: float = 2.0
    longest: timedelta = LONGEST_DELAY
    jitter: float = 0.2

    def __post_init__(self) -> None:
        for field, duration in (("first", self.first), ("longest", self.longest)):
            if microseconds(duration, field=field) is None:
                raise InvalidArgument(f"`{field}` is missing", field=field)
        if not is_number(self.factor) or not 1 <= self.factor <= 1000:  # noqa: PLR2004 - the message names the bounds
            raise InvalidArgument("`factor` is not between 1 and 1000", field="factor")
        if self.longest > LONGEST_DELAY:
            raise InvalidArgument("`longest` is not between 0 and 24 hours", field="longest")
        if not is_number(self.jitter) or not 0 <= self.jitter <= 1:
            raise InvalidArgument("`jitter` is not between 0 and 1", field="jitter")

    def delay_us(self, attempt: int, *, chance: float) -> int:
        """Microseconds to wait after the failure of `attempt` (from 1), for a chance in [0, 1)."""
        longest = self.longest / _MICROSECOND
        try:
            delay = min(self.first / _MICROSECOND * self.factor ** (attempt - 1), longest)
        except OverflowError:
            delay = longest
        return int(delay * (1 - self.jitter * chance))


DEFAULT_RETRY = Retry()
