# Generated from async_handoff.py by tools/generate_sync.py: edit that file, then `make sync`.
"""Handing an admitted invocation over: the application's row and the proof that the invocation holds, in one commit."""

import logging
from collections.abc import Callable
from functools import cache
from uuid import UUID

from onecommit.calls.work_handoff import handoff_check, handoff_lock
from onecommit.domain.work import WorkFence
from onecommit.drivers.driver import SyncDriver, SyncSavepoint
from onecommit.errors import UsageError

_logger = logging.getLogger("onecommit.work")


class SyncHandoff:
    """Prepares the handoff of one invocation in the transaction that is open on a caller's connection."""

    def __init__(self, driver: SyncDriver, fence: WorkFence, *, store_id: UUID) -> None:
        self._driver = driver
        self._fence = fence
        self._store_id = store_id

    def prepare(self, callback: Callable[[], bool]) -> bool:
        """Lock the invocation, run the callback, check again; else take the callback's writes back.

        True if the callback agreed; it counts once the caller's transaction has committed.
        """
        unbounded = self._driver.run(handoff_lock(self._fence, store_id=self._store_id))
        if unbounded:
            _warn_of_missing_limits(" ".join(unbounded))
        savepoint = self._driver.savepoint()
        try:
            agreed = _checked_answer(callback())
            if agreed:
                self._driver.run(handoff_check(self._fence, store_id=self._store_id))
                savepoint.commit()
        except BaseException:
            self._undo(savepoint)
            raise
        if not agreed:
            self._undo(savepoint)
        return agreed

    def _undo(self, savepoint: SyncSavepoint) -> None:
        """Roll back to the savepoint whatever happens to the task; if that fails, nothing can commit any more."""
        self._roll_back(savepoint)

    def _roll_back(self, savepoint: SyncSavepoint) -> None:
        try:
            savepoint.rollback()
        except Exception:  # noqa: BLE001  each driver has errors of its own
            self._driver.sever()


def _checked_answer(answer: object) -> bool:
    if not isinstance(answer, bool):
        raise UsageError(
            "the handoff's callback returned neither True nor False",
            remedy="Return True when its row is written, False to take its writes back.",
        )
    return answer


@cache  # once for each set
def _warn_of_missing_limits(names: str) -> None:
    _logger.warning(
        "a handoff holds locks until its transaction ends, and that has no limit: set %s for its connections",
        names.replace(" ", ", "),
    )
