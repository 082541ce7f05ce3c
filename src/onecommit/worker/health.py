"""Whether a worker lives and whether it can work, for those who ask from outside its event loop."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onecommit.errors import HeartbeatStale, OnecommitError, StoreUnavailable, WorkerIdentityLost
from onecommit.worker.machinery import Machinery
from onecommit.worker.settings import WorkerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """Why not."""

    check: str
    """What was looked at: start, stop, store, worker, heartbeat, database, loop."""
    reason: str
    code: str | None = None


class Health:
    """Answers from any thread, without a call to the database.

    What it knows of the database it knows from the heartbeat, so it is never more than an interval old.
    """

    def __init__(self, settings: WorkerSettings, *, is_stopping: Callable[[], bool]) -> None:
        self.parts: Machinery | None = None
        """The parts of the worker, as soon as it has started."""
        self.failure: OnecommitError | None = None
        """Why the store refuses this process for good."""
        self._window = settings.rescue_window
        self._is_stopping = is_stopping

    def alive(self) -> list[Ailment]:
        """Why this process should be started again; empty while it should not.

        A worker that starts or drains is alive: both are bounded.
        """
        if self.parts is None or self._is_stopping():
            return []
        return list(self._dead_parts(self.parts))

    def ready(self) -> list[Ailment]:
        """Why this process does not work at the moment; empty if it does."""
        if self.failure is not None:
            return [Ailment(check="store", reason=self.failure.message, code=self.failure.code)]
        if self._is_stopping():
            return [Ailment(check="stop", reason="the worker drains and ends")]
        if self.parts is None:
            return [Ailment(check="start", reason="the worker has not started yet")]
        return [*self._dead_parts(self.parts), *self._idle_parts(self.parts)]

    def _dead_parts(self, parts: Machinery) -> Iterator[Ailment]:
        if not parts.heartbeat.is_alive:
            yield Ailment(check="heartbeat", reason="the thread of the heartbeat has ended")
        silence = parts.heartbeat.loop_silence
        if silence > self._window:
            reason = f"the event loop has not run for {silence:.0f} seconds"
            yield Ailment(check="loop", reason=reason)
        for loop in (*parts.loops.values(), *parts.claims.values()):
            if not loop.running:
                yield Ailment(check="loop", reason=f"the {loop.loop.name} has ended")

    def _idle_parts(self, parts: Machinery) -> Iterator[Ailment]:
        if not parts.incarnation.is_alive:
            reason = "the worker was declared dead and has not registered anew yet"
            yield Ailment(check="worker", reason=reason, code=WorkerIdentityLost.code)
        age = parts.heartbeat.age
        if age > self._window:
            reason = f"the last heartbeat arrived {age:.0f} seconds ago"
            yield Ailment(check="heartbeat", reason=reason, code=HeartbeatStale.code)
        if parts.heartbeat.failures or parts.insistence.unanswered:
            reason = "the database does not answer; what is to be recorded is kept and repeated"
            yield Ailment(check="database", reason=reason, code=StoreUnavailable.code)
