"""Which claim requests of this incarnation still have attempts that are not closed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

from onecommit.domain.attempt import Attempt

_batch_of = attrgetter("batch_id")


class OpenRequests:
    """Numbers the claim requests and remembers the oldest open one.

    A request is open from its first sending, answered or not, until every attempt that it claimed is
    closed. Rescue looks at nothing below `oldest`, so it must never be too high; it is a plain
    attribute because the heartbeat thread reads it.
    """

    def __init__(self) -> None:
        self.oldest = 1
        self._next = 1
        self._open: dict[int, int] = {}
        self._request_of: dict[int, int] = {}
        self._left: Counter[int] = Counter()
        self._leased: set[tuple[int, int]] = set()

    @property
    def attempts(self) -> int:
        """Attempts that are claimed and not closed."""
        return sum(self._open.values())

    def begin(self) -> int:
        """The number of a new request."""
        number = self._next
        self._next += 1
        self._open[number] = 0
        return number

    def answered(self, number: int, attempts: Sequence[Attempt]) -> None:
        """The request returned these attempts."""
        for batch, count in Counter(map(_batch_of, attempts)).items():
            self._request_of[batch] = number
            self._left[batch] = count
        self._open[number] += len(attempts)
        if not attempts:
            self._close(number)

    def closed(self, attempts: Iterable[Attempt]) -> None:
        """The store has recorded the end of these attempts, or will never do so."""
        if self._leased:
            attempts = [attempt for attempt in attempts if not self._was_leased(attempt)]
        for batch, count in Counter(map(_batch_of, attempts)).items():
            number = self._request_of.get(batch)
            if number is None:  # of an earlier incarnation
                continue
            self._left[batch] -= count
            self._open[number] -= count
            if self._left[batch] <= 0:
                del self._left[batch], self._request_of[batch]
            if self._open[number] <= 0:
                self._close(number)

    def leased(self, attempt: Attempt) -> None:
        """The attempt is materialized: rescue finds it by its lease, whatever the oldest request is."""
        key = (attempt.job_id, attempt.run_lease)
        if key not in self._leased:
            self.closed([attempt])
            self._leased.add(key)

    def forget(self) -> None:
        """Start again for a new incarnation, whose requests are numbered anew."""
        self._leased.clear()
        self._open.clear()
        self._request_of.clear()
        self._left.clear()
        self._next = self.oldest = 1

    def _was_leased(self, attempt: Attempt) -> bool:
        key = (attempt.job_id, attempt.run_lease)
        found = key in self._leased
        self._leased.discard(key)
        return found

    def _close(self, number: int) -> None:
        del self._open[number]
        self.oldest = next(iter(self._open), self._next)
