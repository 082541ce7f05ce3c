"""What one worker, the leader, does for all of them."""

import time
from collections.abc import Callable

from onecommit.calls.call import Call
from onecommit.calls.maintenance import Promotion, promote_jobs, tend_ring
from onecommit.calls.workers import lead
from onecommit.store.async_store import AsyncStore
from onecommit.worker.incarnation import Incarnation
from onecommit.worker.jobs.rescuer import Rescuer

_LONGEST_PAUSE = 10.0
_TEND_BUSY_SECONDS = 1.0
_TEND_IDLE_SECONDS = 10.0
_LONGEST_PROMOTION_PAUSE = 10.0
"""Jobs scheduled for sooner than this are announced by a notice."""
_SHORTEST_PROMOTION_PAUSE = 0.02
_PROMOTE_LIMIT = 1_000


class Maintenance:
    """Leads if nobody else does: promotes what falls due, rescues the dead, keeps the ring turning.

    Everything here may be done twice; the lease only saves the work.
    """

    name = "maintenance"

    def __init__(
        self,
        store: AsyncStore,
        *,
        incarnation: Incarnation,
        rescuer: Rescuer,
        rescue_window: float,
        listening: Callable[[], bool],
    ) -> None:
        self.leading = False
        self.promoted = 0
        """Jobs made ready since the start."""
        self.rescued = 0
        """Attempts taken back from others since the start."""
        self._store = store
        self._incarnation = incarnation
        self._rescuer = rescuer
        # A lost leader is replaced as soon as it is taken for dead, and then its attempts are rescued.
        self._window = rescue_window
        """Also how long the lease lasts: a dead leader must not delay the rescue of its own jobs."""
        self._often = rescue_window / 3
        self._listening = listening
        self._due = {"lead": 0.0, "promote": 0.0, "rescue": 0.0, "tend": 0.0}

    def expect_promotion(self) -> None:
        """A notice says that a job falls due soon."""
        self._due["promote"] = 0.0

    async def run_once(self) -> float | None:
        """Do what is due; return the seconds until the next duty."""
        if self._is_due("lead"):
            self.leading = await self._lead()
            self._next("lead", self._often)
        if not self.leading:
            return self._pause("lead")
        if self._is_due("promote"):
            self._next("promote", await self._promote())
        if self._is_due("rescue"):
            self._next("rescue", await self._rescue())
        if self._is_due("tend"):
            # Set before it is tried: a ring that refuses to be tended must not hold up the rest at each round.
            self._next("tend", _TEND_IDLE_SECONDS)
            self._next("tend", await self._tend())
        return self._pause("lead", "promote", "rescue", "tend")

    def promotion(self) -> Call[Promotion]:
        """Makes ready what is due, whoever leads; what somebody else's transaction holds is left to it."""
        return promote_jobs(limit=_PROMOTE_LIMIT, epoch=self._incarnation.epoch)

    async def _lead(self) -> bool:
        worker = await self._incarnation.alive()
        call = lead(worker, ttl_us=self._window_us, epoch=self._incarnation.epoch)
        return await self._store.run(call)

    async def _promote(self) -> float:
        promotion = await self._store.run(self.promotion())
        self.promoted += promotion.promoted
        longest = _LONGEST_PROMOTION_PAUSE if self._listening() else 1.0
        if promotion.promoted >= _PROMOTE_LIMIT:
            return 0.0
        if promotion.next_in_us is None:
            return longest
        # What is due and was not promoted is held by somebody else.
        return min(max(promotion.next_in_us / 1_000_000, _SHORTEST_PROMOTION_PAUSE), longest)

    async def _rescue(self) -> float:
        rescue = await self._rescuer.rescue(window_us=self._window_us)
        self.rescued += rescue.rescued
        return 0.0 if rescue.more else self._often

    async def _tend(self) -> float:
        step = await self._store.run(tend_ring(epoch=self._incarnation.epoch))
        return _TEND_IDLE_SECONDS if step.action == "none" else _TEND_BUSY_SECONDS

    @property
    def _window_us(self) -> int:
        return int(self._window * 1_000_000)

    @property
    def _share_of_window(self) -> float:
        return min(self._window / 3, _LONGEST_PAUSE)

    def _is_due(self, duty: str) -> bool:
        return time.monotonic() >= self._due[duty]

    def _next(self, duty: str, seconds: float) -> None:
        self._due[duty] = time.monotonic() + seconds

    def _pause(self, *duties: str) -> float:
        return max(0.0, min(self._due[duty] for duty in duties) - time.monotonic())
