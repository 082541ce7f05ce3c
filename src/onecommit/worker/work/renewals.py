"""Makes the leases of running Work last, on the heartbeat's thread and connection."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from onecommit.calls.work_attempts import renew_work
from onecommit.domain.work import WorkFence
from onecommit.domain.work_attempt import ClaimedWork, Renewal, RenewalOutcome
from onecommit.errors import StoreUnavailable
from onecommit.store.sync_store import SyncStore

_AGAIN = 1.0
"""Seconds until a row that was locked, or a server that did not answer, is asked again."""
_IDLE = 3600.0
_MOST = 1000


@dataclass(slots=True)
class _Lease:
    fence: WorkFence
    every: float
    due: float


class Renewals:
    """Leases by the time of their next renewal.

    A blocked event loop does not stop it: a lease that ends while its executor runs may have to wait for
    an operator, and the longest lease bounds how long a stuck one is kept.
    """

    def __init__(self, *, on_answer: Callable[[WorkFence, Renewal], None]) -> None:
        self.poke: Callable[[], None] = lambda: None
        """Called when a lease is due earlier than the thread expects."""
        self._on_answer = on_answer
        self._leases: dict[tuple[int, int], _Lease] = {}
        self._lock = threading.Lock()
        self._expected = 0.0
        """When the thread comes back by itself, at the latest."""

    def add(self, claimed: ClaimedWork) -> None:
        """Renew this lease from now on."""
        every = claimed.renewal.total_seconds()
        lease = _Lease(claimed.fence, every, time.monotonic() + every)
        with self._lock:
            self._leases[claimed.fence.work_id, claimed.fence.lease_generation] = lease
            is_early = lease.due < self._expected
        if is_early:
            self.poke()

    def remove(self, fence: WorkFence) -> None:
        """Renew it no more."""
        with self._lock:
            self._leases.pop((fence.work_id, fence.lease_generation), None)

    def run(self, store: SyncStore) -> float:
        """Renew what is due, scope by scope; return the seconds until the next is."""
        for batch in self._due():
            try:
                answers = store.run(renew_work([lease.fence for lease in batch]))
            except StoreUnavailable:
                self._postpone(batch)
                continue
            for lease, answer in zip(batch, answers, strict=True):
                pause = _AGAIN if answer.outcome is RenewalOutcome.BUSY else lease.every
                lease.due = time.monotonic() + pause
                if answer.outcome is not RenewalOutcome.BUSY:
                    self._on_answer(lease.fence, answer)
        return self._next()

    def _due(self) -> list[list[_Lease]]:
        now = time.monotonic()
        with self._lock:
            due = [lease for lease in self._leases.values() if lease.due <= now]
        due.sort(key=lambda lease: _batch_of(lease.fence))
        batches = [list(leases) for _, leases in groupby(due, lambda lease: _batch_of(lease.fence))]
        return [batch[i : i + _MOST] for batch in batches for i in range(0, len(batch), _MOST)]

    def _postpone(self, batch: list[_Lease]) -> None:
        for lease in batch:
            lease.due = time.monotonic() + _AGAIN

    def _next(self) -> float:
        with self._lock:
            now = time.monotonic()
            self._expected = min((each.due for each in self._leases.values()), default=now + _IDLE)
            return max(0.0, self._expected - now)


def _batch_of(fence: WorkFence) -> tuple[str, int]:
    return fence.scope, fence.owner
