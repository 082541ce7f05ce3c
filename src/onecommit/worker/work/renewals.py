"""Makes the leases of running Work last, on the heartbeat's thread and connection."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from onecommit.calls.work_attempts import renew_work
from onecommit.domain.work import WorkFence
from onecommit.domain.work_attempt import ClaimedWork, Renewal, RenewalOutcome
from onecommit.errors import StoreUnavailable
from onecommit.store.sync_store import SyncStore

_SOONEST, _LATEST = 0.05, 1.0
"""Seconds until a row that was locked, or a server that did not answer, is asked again."""
_PART = 10
"""The pause is this part of what is left of the lease."""
_IDLE = 3600.0
_MOST = 1000


@dataclass(slots=True)
class _Lease:
    fence: WorkFence
    length: float
    every: float
    due: float
    ends: float
    """When it ends unless it is renewed; never later than the store's own time for it."""

    def renewed(self, asked: float, *, at_limit: bool) -> None:
        """The store has made it last from when it was asked, or as long as it ever will."""
        self.due = time.monotonic() + self.every
        if not at_limit:
            self.ends = asked + self.length

    def postpone(self) -> None:
        """The store did nothing: ask again, the sooner the less is left."""
        now = time.monotonic()
        self.due = now + pause_before_asking_again(self.ends - now)


class Renewals:
    """Leases by the time of their next renewal.

    A blocked event loop does not stop it: a lease that ends while its executor runs may have to wait for
    an operator, and the longest lease bounds how long a stuck one is kept.
    """

    def __init__(self, *, on_answer: Callable[[WorkFence, Renewal], None]) -> None:
        self.poke: Callable[[], None] = lambda: None
        """Called when a lease is due earlier than the thread expects."""
        self.answers: Counter[str] = Counter()
        """How many renewals were answered how, `unanswered` included."""
        self._on_answer = on_answer
        self._leases: dict[tuple[int, int], _Lease] = {}
        self._lock = threading.Lock()
        self._expected = 0.0
        """When the thread comes back by itself, at the latest."""

    def add(self, claimed: ClaimedWork) -> None:
        """Renew this lease from now on."""
        length, every = claimed.lease.total_seconds(), claimed.renewal.total_seconds()
        now = time.monotonic()
        lease = _Lease(claimed.fence, length, every, due=now + every, ends=now + length)
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
            asked = time.monotonic()
            try:
                answers = store.run(renew_work([lease.fence for lease in batch]))
            except StoreUnavailable:
                self.answers["unanswered"] += len(batch)
                for lease in batch:
                    lease.postpone()
                continue
            for lease, answer in zip(batch, answers, strict=True):
                self.answers[answer.outcome] += 1
                if answer.outcome is RenewalOutcome.BUSY:
                    lease.postpone()
                    continue
                lease.renewed(asked, at_limit=bool(answer.at_limit))
                self._on_answer(lease.fence, answer)
        return self._next()

    def _due(self) -> list[list[_Lease]]:
        now = time.monotonic()
        with self._lock:
            due = [lease for lease in self._leases.values() if lease.due <= now]
        due.sort(key=lambda lease: _batch_of(lease.fence))
        batches = [list(leases) for _, leases in groupby(due, lambda lease: _batch_of(lease.fence))]
        return [batch[i : i + _MOST] for batch in batches for i in range(0, len(batch), _MOST)]

    def _next(self) -> float:
        with self._lock:
            now = time.monotonic()
            self._expected = min((each.due for each in self._leases.values()), default=now + _IDLE)
            return max(0.0, self._expected - now)


def pause_before_asking_again(left: float) -> float:
    """Seconds to wait when so many seconds of a lease are left; one that has ended is in no hurry."""
    return min(max(left / _PART, _SOONEST), _LATEST) if left > 0 else _LATEST


def _batch_of(fence: WorkFence) -> tuple[str, int]:
    return fence.scope, fence.owner
