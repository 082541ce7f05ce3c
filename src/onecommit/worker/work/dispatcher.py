"""Finds Work that is due and claims it, scope by scope."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count

from onecommit.calls.work_attempts import claim_work, discover_work, mark_work_sleeper
from onecommit.domain.work_attempt import WorkCandidate, WorkClaim
from onecommit.telemetry.events import Emit, WorkMoved
from onecommit.worker.incarnation import Incarnation
from onecommit.worker.insistence import Insistence
from onecommit.worker.tasks import Tasks
from onecommit.worker.work.contracts import Contracts
from onecommit.worker.work.runner import WorkRunner

_MOST = 1000
_CLAIMS = 4
"""Scopes that are claimed from at the same time: one that is being disabled stalls one of them."""
_AGAIN = 0.05
"""Seconds until the next look while everything that is due is being claimed, or held by others."""
GATHER = 0.005
"""Seconds in which slots become free together while Work flows, so that one claim fills several."""
_LONGEST_REST = 1.0
_CANCEL_SECONDS = 2.0
_MARK_SECONDS = 5.0
"""How long a mark for notices is relied on; the store keeps it for ten."""


class WorkDispatcher:
    """One round is one look at what is due, and a claim for each scope of it.

    Claims only into free slots, and never looks for a contract that has none or that this process does
    not know. What another worker was quicker to claim is lost, and the next look starts elsewhere.
    """

    name = "dispatcher of Work"

    def __init__(
        self,
        contracts: Contracts,
        *,
        runner: WorkRunner,
        insistence: Insistence,
        incarnation: Incarnation,
        poll: Callable[[], tuple[bool, float]],
        emit: Emit,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.full = False
        """No contract has a free slot, so nothing is looked for until one has."""
        self._contracts = contracts
        self._runner = runner
        self._insistence = insistence
        self._incarnation = incarnation
        self._poll = poll
        self._emit = emit
        self._claims = Tasks(on_error=on_error)
        self._busy_scopes: set[str] = set()
        self._fruitless: dict[str, int] = {}
        self._requests = count(1)
        self._offset = 0
        self._hidden = False
        self._marked_until = 0.0
        self._watchers: list[asyncio.Event] = []
        self._loop = asyncio.get_running_loop()

    def watch(self) -> asyncio.Event:
        """An event that is set by a look, begun later than now, that finds nothing."""
        watcher = asyncio.Event()
        self._watchers.append(watcher)
        return watcher

    async def run_once(self) -> float | None:
        """Look once, unless every slot is taken; return the pause before the next look."""
        contracts = self._contracts.open()
        self.full = not contracts
        if self.full:
            return None
        watchers, self._watchers = self._watchers, []
        limit = self._limit(contracts)
        found = await self._insistence.run(discover_work(contracts, limit=limit))
        mine = self._take_slots(found)
        self._hidden = len(found) == limit and not mine
        for scope, items in mine.items():
            await self._claim_soon(scope, items)
        if found:
            self._watchers = [*watchers, *self._watchers]
            return await self._pause_after_work(mine)
        for watcher in watchers:
            watcher.set()
        return await self._pause()

    async def settle(self) -> None:
        """Wait for the claims that are on their way."""
        await self._claims.wait()

    async def stop(self, *, timeout: float) -> None:
        """The same for a while; what a cancelled claim may have got is free again when its lease runs out."""
        if not await self._claims.wait(timeout=timeout):
            await self._claims.cancel(timeout=_CANCEL_SECONDS)

    def _limit(self, contracts: Sequence[tuple[str, str]]) -> int:
        if self._hidden:
            return _MOST  # what is due in scopes that rest must not hide the others for long
        # Twice what can be used: others look at the same items.
        names = {name for name, _ in contracts}
        return min(_MOST, 2 * sum(self._contracts.free(name) for name in names) + 8)

    def _take_slots(self, found: list[WorkCandidate]) -> dict[str, list[WorkCandidate]]:
        """The candidates to claim, by scope; after a lost claim from another place on."""
        start = self._offset % max(1, len(found))
        mine: dict[str, list[WorkCandidate]] = defaultdict(list)
        for item in found[start:] + found[:start]:
            if item.scope not in self._busy_scopes and self._contracts.take(item.contract[0]):
                mine[item.scope].append(item)
        return mine

    async def _claim_soon(self, scope: str, items: list[WorkCandidate]) -> None:
        while len(self._claims) >= _CLAIMS:
            await self._claims.wait_for_change()
        self._busy_scopes.add(scope)
        self._claims.spawn(self._claim(scope, items), name="onecommit:work claim")

    async def _claim(self, scope: str, items: list[WorkCandidate]) -> None:
        unused = [item.contract[0] for item in items]
        rest = 0.0
        try:
            owner = await self._incarnation.alive()
            asked_at = self._loop.time()
            call = claim_work(
                scope,
                items,
                owner=owner,
                request=next(self._requests),
                epoch=self._incarnation.epoch,
            )
            claim = await self._insistence.run(call)
            for claimed in claim.claimed:
                unused.remove(claimed.contract_name)
                self._runner.begin(claimed, asked_at=asked_at)
            rest = self._rest_after(scope, claim)
            self._learn(claim)
        finally:
            self._loop.call_later(rest, self._busy_scopes.discard, scope)
            for name in unused:
                self._contracts.give_back(name)
            self._runner.on_free()

    def _rest_after(self, scope: str, claim: WorkClaim) -> float:
        """Seconds for which a scope rests whose items somebody else holds, for long perhaps."""
        if claim.claimed or claim.moved:
            self._fruitless.pop(scope, None)
            return 0.0
        times = self._fruitless[scope] = self._fruitless.get(scope, 0) + 1
        return min(_AGAIN * 2.0 ** min(times, 20) / 2, _LONGEST_REST)

    def _learn(self, claim: WorkClaim) -> None:
        for moved in claim.moved:
            self._emit(
                WorkMoved(
                    work=moved.work_id,
                    contract=moved.contract,
                    attempt=moved.attempt,
                    code=moved.code,
                )
            )
        if claim.lost:
            self._offset += 1 + hash((self._incarnation.worker, self._offset)) % 1021
        else:
            self._offset = 0

    async def _pause_after_work(self, mine: dict[str, list[WorkCandidate]]) -> float | None:
        if self._marked_until:
            # While Work flows it is looked for anyway, and notices serialize commits.
            self._marked_until = 0.0
            await self._insistence.run(mark_work_sleeper(sleep=False))
        return GATHER if mine else _AGAIN

    async def _pause(self) -> float:
        listening, poll = self._poll()
        now = self._loop.time()
        if listening and self._marked_until <= now:
            # Marked before the last look, so that what is accepted after that look sends a notice.
            await self._insistence.run(mark_work_sleeper(sleep=True))
            self._marked_until = now + _MARK_SECONDS
            return 0.0
        return poll
