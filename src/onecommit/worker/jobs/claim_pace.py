"""When the next claim of a queue is due, from the summary of the last one."""

import random

from onecommit.domain.attempt import ClaimStatus

_FIRST_LOOK = 0.002
_LAST_LOOK = 1.0
_BUSY = 0.003
_WORTH_A_NOTICE = 0.015
"""Before a pause longer than this, producers are asked to send a notice."""


class ClaimPace:
    """Decides the rhythm of one queue's claims; all times are seconds.

    Producers are asked to notify only by the claim after which the worker really sleeps, and told to
    stop by the first claim of the worker that a notice woke: while work flows the worker looks again
    by itself, and notices, which serialize commits, are not sent.
    """

    def __init__(self) -> None:
        self._looks = 0
        self.sleep: bool | None = None
        """What the next claim says about notices: send them, stop, or as other workers wish."""

    def woken(self) -> None:
        """A notice came."""
        self._looks = 0
        self.sleep = False

    def pause_after(
        self, status: ClaimStatus, *, claimed: int, listening: bool, poll: float
    ) -> float:
        """Pause before the next claim, after one that returned `status` and `claimed` jobs."""
        asked, self.sleep = self.sleep, None
        if status is ClaimStatus.MORE:
            self._looks = 0
            return 0.0
        if status is ClaimStatus.BUSY:
            return _BUSY * (0.5 + random.random())  # noqa: S311 - jitter, not a secret
        if claimed:
            self._looks = 0
            return _FIRST_LOOK
        if status is ClaimStatus.PENDING:
            return self._look_again(_LAST_LOOK, listening=listening)
        if not listening:
            return self._look_again(poll, listening=False)
        self._looks = 0
        self.sleep = True
        return poll if asked else 0.0

    def _look_again(self, longest: float, *, listening: bool) -> float:
        pause = min(_FIRST_LOOK * 2.0**self._looks, longest)
        self._looks = min(self._looks + 1, 20)
        if listening and pause > _WORTH_A_NOTICE:
            self.sleep = True
        return pause
