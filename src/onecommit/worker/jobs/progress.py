"""Progress that handlers publish: gathered, stored a little later, the newest wins."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeAlias

from onecommit.calls.attempts import set_progress
from onecommit.domain.attempt import Attempt
from onecommit.domain.identity import Epoch
from onecommit.worker.insistence import Insistence

_Key: TypeAlias = tuple[int, int]


class Progress:
    """Keeps what attempts published until it is stored or the attempt has ended."""

    name = "progress"

    def __init__(
        self,
        insistence: Insistence,
        *,
        epoch: Epoch,
        on_error: Callable[[BaseException], None],
        delay: float = 1.0,
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Starts the next round at once; set by whoever runs this loop."""
        self._insistence = insistence
        self._epoch = epoch
        self._on_error = on_error
        self._delay = delay
        self._unsaved: dict[_Key, tuple[Attempt, str]] = {}
        self.published: set[_Key] = set()
        """The running attempts that have published something."""
        self._flushing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def publish(self, attempt: Attempt, progress: str) -> None:
        """Take note of progress; callable from any thread."""
        if threading.get_ident() == self._thread:
            self._note(attempt, progress)
        else:
            self._loop.call_soon_threadsafe(self._note, attempt, progress)

    async def flush(self, attempt: Attempt) -> None:
        """Return when the newest progress of the attempt is stored."""
        await asyncio.sleep(0)  # what a thread published before arrives now
        async with self._flushing:
            if _key(attempt) in self._unsaved:
                await self._save()

    async def conclude(self, attempt: Attempt) -> bool:
        """Store what is left before the attempt ends; true if it published anything at all."""
        if _key(attempt) not in self.published:
            return False
        try:
            await self.flush(attempt)
        except Exception as error:  # noqa: BLE001 - the attempt's end is worth more than its progress
            self._on_error(error)
        self.forget(attempt)
        return True

    def forget(self, attempt: Attempt) -> None:
        """The attempt has ended: nothing may be stored about it any more."""
        self.published.discard(_key(attempt))
        self._unsaved.pop(_key(attempt), None)

    async def run_once(self) -> float | None:
        """Store everything that is unsaved."""
        await asyncio.sleep(self._delay if self._unsaved else 0)
        async with self._flushing:
            if self._unsaved:
                await self._save()
        return None

    def _note(self, attempt: Attempt, progress: str) -> None:
        first = not self._unsaved
        self.published.add(_key(attempt))
        self._unsaved[_key(attempt)] = (attempt, progress)
        if first:
            self.wake()

    async def _save(self) -> None:
        taken, self._unsaved = self._unsaved, {}
        try:
            await self._insistence.run(set_progress(list(taken.values()), epoch=self._epoch))
        except asyncio.CancelledError:
            self._unsaved = taken | self._unsaved
            raise


def _key(attempt: Attempt) -> _Key:
    return attempt.job_id, attempt.run_lease
