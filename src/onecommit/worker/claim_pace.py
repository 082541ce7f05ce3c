"""When the next claim of a queue is due, from the summary of the last one."""

import random

_FIRST_LOOK = 0.002
_LAST_LOOK = 1.0
_BUSY = 0.003
_WORTH_A_NOTICE = 0.015
"""Before a pause longer than this, producers are asked to send a notice."""


class ClaimPace:
    """Decides the rhythm of one queue's claims; all times are seconds.

    Producers are asked to notify (``p_sleep``) only by the claim after which the worker really
    sleeps: while work flows the worker looks again by itself and producers send nothing.
    """

    def __init__(self) -> None:
        self._looks = 0
        self._sleep = False

    @property
    def sleep(self) -> bool:
        """Whether the next claim asks producers to notify."""
        return self._sleep

    def woken(self) -> None:
        """A notice came, or work went on: the next claim precedes no sleep."""
        self._looks = 0
        self._sleep = False

    def pause_after(self, status: str, *, claimed: int, listening: bool, poll: float) -> float:
        """Pause before the next claim, after one that returned `status` and `claimed` jobs."""
        asked, self._sleep = self._sleep, False
        if status == "more":
            self._looks = 0
            return 0.0
        if status == "busy":
            return _BUSY * (0.5 + random.random())  # noqa: S311 - jitter, not a secret
        if claimed:
            self._looks = 0
            return _FIRST_LOOK
        if status == "pending":
            return self._look_again(_LAST_LOOK, listening=listening)
        if not listening:
            return self._look_again(poll, listening=False)
        self._looks = 0
        self._sleep = True
        return poll if asked else 0.0

    def _look_again(self, longest: float, *, listening: bool) -> float:
        pause = min(_FIRST_LOOK * 2.0**self._looks, longest)
        self._looks = min(self._looks + 1, 20)
        self._sleep = listening and pause > _WORTH_A_NOTICE
        return pause
