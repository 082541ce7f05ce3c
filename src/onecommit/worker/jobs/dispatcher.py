"""Claims the jobs of one queue and hands them to its station."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from onecommit.calls.attempts import claim_jobs
from onecommit.domain.attempt import Attempt, Claim, ClaimStatus
from onecommit.domain.identity import WorkerId
from onecommit.errors import WorkerEnded
from onecommit.worker.incarnation import Incarnation
from onecommit.worker.insistence import Insistence
from onecommit.worker.jobs.claim_pace import ClaimPace
from onecommit.worker.jobs.claim_size import ClaimSize
from onecommit.worker.jobs.station import Station
from onecommit.worker.open_requests import OpenRequests


class Dispatcher:
    """One round is one claim, sized to what the station can use and followed by the pause it asks for.

    The next batch is claimed while the current one runs. A claim whose reply was lost is repeated
    under the same request number until it is answered, so that no job is claimed and forgotten.
    """

    def __init__(
        self,
        station: Station,
        *,
        size: ClaimSize,
        insistence: Insistence,
        incarnation: Incarnation,
        requests: OpenRequests,
        poll: Callable[[], tuple[bool, float]],
        on_dead: Callable[[WorkerId], None],
    ) -> None:
        self.name = f"dispatcher of {station.queue}"
        self.claimed = 0
        """Attempts claimed since the start."""
        self.on_claimed: Callable[[Sequence[Attempt]], None] | None = None
        """Told about each claim that found something."""
        self._station = station
        self._size = size
        self._pace = ClaimPace()
        self._insistence = insistence
        self._incarnation = incarnation
        self._requests = requests
        self._poll = poll
        self._on_dead = on_dead
        self._full = False
        self._watchers: list[asyncio.Event] = []

    def watch(self) -> asyncio.Event:
        """An event that is set by a claim, begun later than now, that finds nothing to wait for."""
        watcher = asyncio.Event()
        self._watchers.append(watcher)
        return watcher

    def notified(self) -> bool:
        """A notice came for this queue; true if it is a reason to claim now."""
        self._pace.woken()
        return not self._full

    def hungry(self) -> bool:
        """The station runs low; true if the dispatcher was waiting for that."""
        return self._full

    async def run_once(self) -> float | None:
        """Claim once, unless the station has enough."""
        limit = self._wanted()
        self._full = limit == 0
        if self._full:
            return None
        watchers, self._watchers = self._watchers, []
        claim = await self._claim(limit)
        pause = 0.0 if claim is None else self._pause_after(claim)
        if claim is not None and _is_nothing(claim, pause):
            for watcher in watchers:
                watcher.set()
        else:
            self._watchers += watchers
        return pause

    def _pause_after(self, claim: Claim) -> float:
        listening, poll = self._poll()
        return self._pace.pause_after(
            claim.status, claimed=len(claim.attempts), listening=listening, poll=poll
        )

    def _wanted(self) -> int:
        station = self._station
        self._size.observe(ended=station.ended, now=time.monotonic())
        limit = self._size.wanted(running=station.running, waiting=station.waiting)
        station.low_mark = self._size.low_mark
        return limit

    async def _claim(self, limit: int) -> Claim | None:
        """The answer, or None if this incarnation was declared dead meanwhile."""
        worker = await self._incarnation.alive()
        request = self._requests.begin()
        call = claim_jobs(
            self._station.queue,
            worker=worker,
            request=request,
            limit=limit,
            lifetime_us=None,
            sleep=self._pace.sleep,
            epoch=self._incarnation.epoch,
        )
        try:
            claim = await self._insistence.run(call)
        except WorkerEnded:
            self._on_dead(worker)
            return None
        except Exception:
            self._requests.answered(request, [])  # refused, so nothing was claimed
            raise
        if not self._incarnation.is_current(worker):
            return None  # the jobs are being rescued; running them would only lose
        self._requests.answered(request, claim.attempts)
        if claim.attempts:
            skew = claim.attempts[0].claimed_at - datetime.now(UTC)
            self.claimed += len(claim.attempts)
            if self.on_claimed is not None:
                self.on_claimed(claim.attempts)
            self._station.add(claim.attempts, skew=skew)
        return claim


_NOTHING_THERE = frozenset({ClaimStatus.EMPTY, ClaimStatus.PAUSED, ClaimStatus.UNKNOWN_QUEUE})
_NOT_WAITED_FOR = 0.25
"""Numbers that stay uncommitted until the looks are so far apart belong to a long transaction."""


def _is_nothing(claim: Claim, pause: float) -> bool:
    """Whether nothing was there, and nothing is worth waiting for."""
    if claim.attempts:
        return False
    return claim.status in _NOTHING_THERE or pause >= _NOT_WAITED_FOR
