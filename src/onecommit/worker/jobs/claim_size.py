"""How many jobs the next claim asks for: enough to keep every slot busy, no more than run soon."""

_MEMORY_SECONDS = 0.5
"""Completions older than this hardly count, so that the rate follows a change of the workload."""


class ClaimSize:
    """Sizes claims of one queue from its concurrency and the rate at which jobs end.

    Jobs beyond the free slots are *prefetched*. Their number is what the worker completes in
    `horizon` seconds, so a queue of slow jobs hoards nothing and a queue of fast ones never waits
    for a round trip.
    """

    def __init__(self, *, concurrency: int, horizon: float, largest: int) -> None:
        self._concurrency = concurrency
        self._horizon = horizon
        self._largest = largest
        self._rate = 0.0
        self._ended = 0
        self._since: float | None = None

    @property
    def rate(self) -> float:
        """Jobs that ended per second, lately."""
        return self._rate

    def observe(self, *, ended: int, now: float) -> None:
        """Take note of the total number of jobs that have ended by `now`."""
        if self._since is None:
            self._ended, self._since = ended, now
            return
        elapsed = now - self._since
        if elapsed < self._horizon / 10:
            return
        weight = min(1.0, elapsed / _MEMORY_SECONDS)
        self._rate += weight * ((ended - self._ended) / elapsed - self._rate)
        self._ended, self._since = ended, now

    @property
    def prefetch(self) -> int:
        """Jobs worth having at hand beside those that run."""
        return min(int(self._rate * self._horizon), self._largest)

    @property
    def low_mark(self) -> int:
        """With no more than this at hand it is time to claim again; claims stay large that way."""
        return self.prefetch // 2

    def wanted(self, *, running: int, waiting: int) -> int:
        """Size of the claim to make now; 0 while enough is at hand."""
        free = max(self._concurrency - running, 0)
        missing = free + self.prefetch - waiting
        if missing <= 0 or (waiting >= free and waiting > self.low_mark):
            return 0
        return min(missing, self._largest)
