"""Several worker processes under one parent: start, restart with backoff, forward signals."""

import asyncio
import os
import signal
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from onecommit.telemetry.events import Emit, ProcessEnded, ProcessesGivenUp

EXIT_CONFIGURATION = 78
"""The deployment must change (schema, epoch, settings): starting again would not help."""
_HEALTHY_SECONDS = 30.0
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_PATIENCE = 5
"""Quick deaths in a row, over all children, before the supervisor gives up."""


class Supervisor:
    """Keeps one child of each command running until a signal or their success ends them.

    Each child's standard input is a pipe that only the supervisor holds, so that children notice its
    death whatever killed it. They live in process groups of their own: a Ctrl-C in the terminal
    reaches them once, through the supervisor.
    """

    def __init__(self, commands: Sequence[Sequence[str]], *, emit: Emit) -> None:
        self._commands = [tuple(command) for command in commands]
        self._emit = emit
        self._children: dict[int, Process] = {}
        self._quick_deaths = 0
        self._exit_code = 0
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Supervise until every child has ended for good; return the exit code of the whole."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._forward, number)
        try:
            await asyncio.gather(
                *(self._keep_running(index) for index in range(len(self._commands)))
            )
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        return self._exit_code

    async def _keep_running(self, index: int) -> None:
        failures = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            code, pid = await self._run_child(index)
            if code == 0 or self._stopping.is_set():
                self._exit_code = self._exit_code or max(code, 0)
                return
            quick = time.monotonic() - started < _HEALTHY_SECONDS
            failures = failures + 1 if quick else 1
            self._quick_deaths = self._quick_deaths + 1 if quick else 0
            if code == EXIT_CONFIGURATION or self._quick_deaths >= _PATIENCE:
                self._give_up(code)
                return
            pause = min(_FIRST_PAUSE * 2.0 ** (failures - 1), _LONGEST_PAUSE)
            self._emit(ProcessEnded(index=index, pid=pid, exit_code=code, pause_seconds=pause))
            await self._pause(pause)

    async def _run_child(self, index: int) -> tuple[int, int]:
        child = await asyncio.create_subprocess_exec(
            *self._commands[index], stdin=PIPE, process_group=0, env=os.environ
        )
        self._children[index] = child
        if self._stopping.is_set():  # the signal came while the child was being started
            child.send_signal(signal.SIGTERM)
        try:
            return await child.wait(), child.pid
        finally:
            del self._children[index]

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    def _give_up(self, code: int) -> None:
        if not self._stopping.is_set():
            self._emit(ProcessesGivenUp(failures=self._quick_deaths))
        self._exit_code = code if code > 0 else 1
        self._forward(signal.SIGTERM)

    def _forward(self, number: int) -> None:
        self._stopping.set()
        for child in self._children.values():
            child.send_signal(number)


def stop_with_parent(*, budget: float) -> None:
    """Send this process SIGTERM when the supervisor's end of standard input closes.

    Works while a handler blocks the event loop, because it has a thread of its own; `budget`
    seconds later the process ends in any case.
    """

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 64):
            continue
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(budget)
        os._exit(1)

    threading.Thread(target=watch, name="onecommit-parent", daemon=True).start()
