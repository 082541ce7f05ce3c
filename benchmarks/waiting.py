"""Wait for something that nobody can signal: another process, or a count in the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


async def wait_until(
    condition: Callable[[], Awaitable[bool]], *, deadline: float, pause: float = 0.02
) -> bool:
    """Ask again and again until the answer is yes, or no longer than the monotonic deadline."""
    while not (met := await condition()) and time.monotonic() < deadline:
        await asyncio.sleep(pause)
    return met
