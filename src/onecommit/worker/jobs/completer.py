"""Records how attempts ended, many in one statement."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from onecommit.app.follow_ups import REFUSALS
from onecommit.domain.attempt import Attempt
from onecommit.domain.closing import Finish, FollowedUp, Loss, Verdict
from onecommit.domain.follow_up import Transition
from onecommit.domain.identity import Epoch
from onecommit.telemetry.events import (
    AttemptUnrecorded,
    Emit,
    RecycledAttempt,
    StaleAttempt,
    names_of,
)
from onecommit.worker.insistence import Insistence
from onecommit.worker.jobs.closing_batch import ClosingBatch, Completions, Finishes, FollowedUps
from onecommit.worker.open_requests import OpenRequests

_BUSY_PAUSE = 0.1
"""Seconds before an attempt is recorded again that an open transaction holds."""


class Completer:
    """One flush at a time, as soon as `size` attempts wait or the first has waited `delay` seconds.

    While a flush is on its way the next one gathers, so a slow database makes larger batches. What
    was handed over stays here until the store has answered, however often the connection is lost.
    """

    name = "completer"

    def __init__(
        self,
        insistence: Insistence,
        *,
        epoch: Epoch,
        requests: OpenRequests,
        emit: Emit,
        size: int,
        delay: float,
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Starts the next round at once; set by whoever runs this loop."""
        self.on_refused: Callable[[FollowedUp, Exception], None] = lambda _, __: None
        """Records an attempt whose follow-ups the store refuses; set by whoever decides about ends."""
        self.on_ended: Callable[[Attempt, Finish | None], None] | None = None
        """Told about each attempt once its end is committed; None for a plain completion."""
        self.on_recorded: Callable[[int, float], None] | None = None
        """Told how many ends one statement recorded, and in how many seconds."""
        self.ended: Counter[Transition | None] = Counter()
        """How many attempts ended how; None: back to their queue."""
        self._insistence = insistence
        self._epoch = epoch
        self._requests = requests
        self._emit = emit
        self._size = size
        self._delay = delay
        self._completions = Completions()
        self._finishes = Finishes()
        self._followed_ups = FollowedUps()
        self._sending: list[ClosingBatch] = []
        self._postponed: list[ClosingBatch] = []
        self._gathering = False
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def completed(self) -> int:
        """Attempts that completed."""
        return self.ended[Transition.COMPLETED]

    @property
    def unrecorded(self) -> int:
        """Attempts that the store has not answered for yet."""
        batches = (*self._sending, *self._postponed)
        return self._waiting + sum(len(batch.attempts) for batch in batches)

    def complete(self, attempt: Attempt) -> None:
        """Record that the attempt completed and leaves nothing behind."""
        self._completions.attempts.append(attempt)
        if not self._gathering:
            self._gather()

    def complete_with(self, attempt: Attempt, *, detail: str | None, progressed: bool) -> None:
        """Record that the attempt completed, with its result as JSON or with progress to keep."""
        self._completions.add_with(attempt, detail=detail, progressed=progressed)
        if not self._gathering:
            self._gather()

    def finish(self, finish: Finish) -> None:
        """Record any other end."""
        self._finishes.add(finish)
        if not self._gathering:
            self._gather()

    def follow_up(self, closing: FollowedUp) -> None:
        """Record any end, and enqueue what follows in the same transaction."""
        self._followed_ups.add(closing)
        if not self._gathering:
            self._gather()

    def nudge(self) -> None:
        """Flush now if enough waits; called between turns rather than for each attempt."""
        if len(self._completions.attempts) >= self._size:
            self.wake()

    async def settle(self) -> None:
        """Return when the store has answered for everything that was handed over."""
        while not self._settled.is_set():
            self.wake()
            await self._settled.wait()

    async def run_once(self) -> float | None:
        """Send what waits, and say when to look again."""
        self._sending += self._take()
        while self._sending:
            batch = self._sending[0]
            began = time.monotonic()
            try:
                losses = await self._insistence.run(batch.call(epoch=self._epoch))
            except Exception as error:
                if not _is_refusal(error):
                    raise
                self._sending[:1] = self._divided(batch, error)
            else:
                del self._sending[0]
                if self.on_recorded is not None:
                    self.on_recorded(len(batch.attempts), time.monotonic() - began)
                self._note(batch, losses)
        if self._waiting:
            return 0.0 if self._waiting >= self._size else self._delay
        self._gathering = False
        if not self._postponed:
            self._settled.set()
        return None

    @property
    def _waiting(self) -> int:
        return (
            len(self._completions.attempts)
            + len(self._finishes.attempts)
            + len(self._followed_ups.attempts)
        )

    def _gather(self) -> None:
        self._gathering = True
        self._settled.clear()
        asyncio.get_running_loop().call_later(self._delay, self.wake)

    def _take(self) -> list[ClosingBatch]:
        taken: list[ClosingBatch] = []
        if self._completions.attempts:
            taken.append(self._completions)
            self._completions = Completions()
        if self._finishes.attempts:
            taken.append(self._finishes)
            self._finishes = Finishes()
        if self._followed_ups.attempts:
            taken.append(self._followed_ups)
            self._followed_ups = FollowedUps()
        return taken

    def _divided(self, batch: ClosingBatch, error: Exception) -> list[ClosingBatch]:
        """What to send instead of a batch that the store refuses because of one of its items."""
        size = len(batch.attempts)
        if size > 1:
            return [batch.part(range(size // 2)), batch.part(range(size // 2, size))]
        self._give_up(batch, error)
        return []

    def _note(self, batch: ClosingBatch, losses: list[Loss]) -> None:
        decided = batch.attempts
        busy = {position for position, verdict in losses if verdict is Verdict.BUSY}
        if busy:
            self._postpone(batch.part(sorted(busy)))
            decided = [each for position, each in enumerate(decided) if position not in busy]
        self._requests.closed(decided)
        self._count(batch, lost={loss.position for loss in losses})
        for position, verdict in losses:
            if position not in busy:
                self._report_loss(batch, position, verdict)

    def _postpone(self, batch: ClosingBatch) -> None:
        """Ask again soon: whoever holds the attempts decides about them first."""
        self._postponed.append(batch)
        asyncio.get_running_loop().call_later(_BUSY_PAUSE, self._send_again, batch)

    def _send_again(self, batch: ClosingBatch) -> None:
        self._postponed.remove(batch)
        self._sending.append(batch)
        self.wake()

    def _count(self, batch: ClosingBatch, *, lost: set[int]) -> None:
        if isinstance(batch, Completions):
            self.ended[Transition.COMPLETED] += len(batch.attempts) - len(lost)
        else:
            self.ended.update(
                finish.transition
                for position in range(len(batch.attempts))
                if position not in lost and (finish := batch.finish(position)) is not None
            )
        if self.on_ended is not None:
            for position, attempt in enumerate(batch.attempts):
                if position not in lost:
                    self.on_ended(attempt, batch.finish(position))

    def _report_loss(self, batch: ClosingBatch, position: int, verdict: Verdict) -> None:
        names = names_of(batch.attempts[position])
        if verdict is Verdict.RECYCLED:
            self._emit(RecycledAttempt(**names))
        else:
            self._emit(StaleAttempt(**names, wanted=batch.outcome(position).value))

    def _give_up(self, batch: ClosingBatch, error: Exception) -> None:
        if isinstance(batch, FollowedUps):
            self.on_refused(batch.items[0], error)
            return
        self._emit(
            AttemptUnrecorded(
                **names_of(batch.attempts[0]),
                wanted=batch.outcome(0).value,
                failure=type(error).__qualname__,
            )
        )


def _is_refusal(error: Exception) -> bool:
    """Whether the store refuses what one of the items says, rather than the call as such."""
    state = getattr(error, "sqlstate", None) or ""
    return isinstance(error, REFUSALS) or state.startswith("22")
