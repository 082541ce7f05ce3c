"""Accept Work from several tasks at once; shared by the scenarios of Work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from benchmarks.adapters.contract import Acceptor


async def accept_all(acceptor: Acceptor, numbers: range, *, producers: int) -> float:
    """Accept the items, each in a transaction of its own, and return how many seconds that took."""
    left = iter(numbers)
    started = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(producers):
            tasks.create_task(_accept(acceptor, left))
    return time.monotonic() - started


async def _accept(acceptor: Acceptor, left: Iterator[int]) -> None:
    for number in left:
        await acceptor.accept(number)
