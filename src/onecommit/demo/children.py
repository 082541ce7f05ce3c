"""The processes of the demo, none of which outlives it."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from onecommit.errors import OnecommitError

_LONGEST_WAIT = 60.0

Child = subprocess.Popen[str]


class DemoStalled(OnecommitError):
    """The demo did not get on in time."""

    def __init__(self, what: str) -> None:
        super().__init__(what, remedy="Try again on a less loaded machine; then report it.")


class Children:
    """Workers and the provider; whatever still runs at the end of the block is killed."""

    def __init__(self) -> None:
        self._workers: list[Child] = []
        self._all: list[Child] = []

    def worker(self, part: str, **environment: str) -> Child:
        """Start a worker for a part of the demo."""
        worker = self._start("onecommit.demo.worker_process", part, **environment)
        self._workers.append(worker)
        return worker

    def stop_workers(self) -> None:
        """Let the workers finish what they run: a stale attempt is refused only when it tries."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            _wait(worker)
        self._workers.clear()

    def provider(self, journal: Path) -> int:
        """Start the provider, and return its port."""
        provider = self._start("onecommit.demo.provider", str(journal))
        port = provider.stdout.readline() if provider.stdout else ""
        if not port.strip().isdecimal():
            raise DemoStalled("the provider's process ended before it listened")
        return int(port)

    def commands(self, commands: Iterable[Sequence[str]], **environment: str) -> None:
        """Give commands to the program `onecommit`, all at the same time, and wait until each is done."""
        for child in [self._start("onecommit", *command, **environment) for command in commands]:
            if code := _wait(child):
                raise DemoStalled(f"a command of the demo ended with exit code {code}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._all:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                if stream:
                    stream.close()

    def _start(self, module: str, *arguments: str, **environment: str) -> Child:
        child = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._all.append(child)
        return child


def _wait(child: Child) -> int:
    try:
        return child.wait(timeout=_LONGEST_WAIT)
    except subprocess.TimeoutExpired:
        raise DemoStalled(f"a process did not end in {_LONGEST_WAIT:.0f} seconds") from None
