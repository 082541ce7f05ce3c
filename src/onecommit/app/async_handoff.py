"""Handing an admitted invocation over: the application's row and the proof that the invocation holds, in one commit."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cache
from uuid import UUID

from onecommit.calls.work_handoff import handoff_check, handoff_lock
from onecommit.domain.work import WorkFence
from onecommit.drivers.driver import AsyncDriver, AsyncSavepoint
from onecommit.errors import UsageError

_logger = logging.getLogger("onecommit.work")


class AsyncHandoff:
    """Prepares the handoff of one invocation in the transaction that is open on a caller's connection."""

    def __init__(self, driver: AsyncDriver, fence: WorkFence, *, store_id: UUID) -> None:
        self._driver = driver
        self._fence = fence
        self._store_id = store_id

    async def prepare(self, callback: Callable[[], Awaitable[bool]]) -> bool:
        """Lock the invocation, run the callback, check again; else take the callback's writes back.

        True if the callback agreed; it counts once the caller's transaction has committed.
        """
        unbounded = await self._driver.run(handoff_lock(self._fence, store_id=self._store_id))
        if unbounded:
            _warn_of_missing_limits(" ".join(unbounded))
        savepoint = await self._driver.savepoint()
        try:
            agreed = _checked_answer(await callback())
            if agreed:
                await self._driver.run(handoff_check(self._fence, store_id=self._store_id))
                await savepoint.commit()
        except BaseException:
            await self._undo(savepoint)
            raise
        if not agreed:
            await self._undo(savepoint)
        return agreed

    async def _undo(self, savepoint: AsyncSavepoint) -> None:
        """Roll back to the savepoint whatever happens to the task; if that fails, nothing can commit any more."""
        undoing = asyncio.ensure_future(self._roll_back(savepoint))  # async-only
        cancelled = False  # async-only
        while not undoing.done():  # async-only
            try:  # async-only
                await asyncio.shield(undoing)  # async-only
            except asyncio.CancelledError:  # async-only
                cancelled = True  # async-only
        if cancelled:  # async-only
            raise asyncio.CancelledError  # async-only
        # sync-only: self._roll_back(savepoint)

    async def _roll_back(self, savepoint: AsyncSavepoint) -> None:
        try:
            await savepoint.rollback()
        except Exception:  # noqa: BLE001  each driver has errors of its own
            await self._driver.sever()


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
