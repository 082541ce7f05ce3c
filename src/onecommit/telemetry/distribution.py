"""Measurements sorted by size."""

from bisect import bisect_left
from itertools import accumulate


class Distribution:
    """How many measurements came up to which bound, measured by one thread and read by any.

    Without a lock, because it is fed for each job; a histogram of prometheus-client, which any thread may
    feed, costs several times as much.
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.total = 0.0
        """The sum of all measurements."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)

    def observe(self, measured: float) -> None:
        """Take note of one."""
        self._counts[bisect_left(self._bounds, measured)] += 1
        self.total += measured

    def buckets(self) -> list[tuple[float, int]]:
        """Each bound with the measurements up to it; the last bound is infinite."""
        bounds = (*self._bounds, float("inf"))
        return list(zip(bounds, accumulate(list(self._counts)), strict=True))
