"""The worker process: runs one adapter's worker and reports its progress as lines of JSON."""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time

import uvloop

from benchmarks.adapters.catalogue import load


class Meter:
    """Counts handled jobs and writes a line at the first, at every `step` and at `expected`."""

    def __init__(self, *, step: int, expected: int) -> None:
        self._step = step
        self._expected = expected
        self._count = 0

    def handled(self, number: int) -> None:
        """Note that a handler has run."""
        self._count += 1
        if self._count % self._step == 0 or self._count in (1, self._expected):
            self._report(number)

    def _report(self, number: int) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        line = {
            "at": time.monotonic(),
            "number": number,
            "count": self._count,
            "cpu": usage.ru_utime + usage.ru_stime,
            "peak_kib": usage.ru_maxrss,
        }
        os.write(sys.stdout.fileno(), json.dumps(line).encode() + b"\n")


def _end_with_parent() -> None:
    """Die when the harness closes our standard input, even if it was killed."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Run the worker of the adapter whose module the command line names, for ever."""
    module, step, expected = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    meter = Meter(step=step, expected=expected)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    uvloop.run(load(module).work(os.environ["BENCH_DSN"], meter.handled))


if __name__ == "__main__":
    main()
