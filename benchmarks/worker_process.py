"""Start a system's worker as one process of its own and follow its progress."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.adapters.contract import System
from benchmarks.processor_time import process_seconds

_ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the worker process knew when it reported: monotonic time, jobs, CPU, peak memory."""

    at: float
    number: int
    count: int
    cpu: float
    peak_kib: int


class Worker:
    """A running worker process."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._output = process.stdout
        self._pid = process.pid

    def processor_seconds(self) -> float | None:
        """Return the processor time of the process so far, where it can be read."""
        return process_seconds(self._pid)

    async def next_progress(self, timeout: float) -> Progress | None:
        """Return the next report; None when none came in time."""
        try:
            line = await asyncio.wait_for(self._output.readline(), timeout)
        except TimeoutError:
            return None
        if not line:
            raise RuntimeError("The worker process ended by itself; its error is above.")
        return Progress(**json.loads(line))

    async def first(self) -> Progress:
        """Return the report of the first handled job."""
        progress = await self.next_progress(START_SECONDS)
        if progress is None:
            raise RuntimeError(f"The worker handled no job within {START_SECONDS:.0f} seconds.")
        return progress

    async def until(self, count: int, deadline: float) -> Progress | None:
        """Return the last report until that many jobs are handled or the monotonic deadline."""
        last = None
        while last is None or last.count < count:
            progress = await self.next_progress(max(0.0, deadline - time.monotonic()))
            if progress is None:
                break
            last = progress
        return last


@asynccontextmanager
async def running_worker(
    adapter: System, dsn: str, *, expected: int | None = None, step: int | None = None
) -> AsyncIterator[Worker]:
    """Run the adapter's worker, reporting each `step`, by default a percent of those expected, then kill it."""
    step = step or max(1, (expected or 0) // 100)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.worker_main",
        type(adapter).__module__,
        str(step),
        str(expected or 0),
        stdin=PIPE,
        stdout=PIPE,
        cwd=_ROOT,
        env={**os.environ, "BENCH_DSN": dsn},
    )
    try:
        yield Worker(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
