"""What a handler forks off is not the worker, and must not run on as a second one on the same connections."""

import os
import sys
from typing import NoReturn

depth = 0
"""How many forks lie between this process and the one that imported this module."""


def _note_fork() -> None:
    global depth  # noqa: PLW0603 - of the process, as forks are
    depth += 1


os.register_at_fork(after_in_child=_note_fork)


def end_child(failure: BaseException | None) -> NoReturn:
    """End a process that a handler forked off, where the handler of its parent would return to the worker.

    The exit code is that of `sys.exit`, else 0, or 1 after any other exception.
    """
    code: object = 0 if failure is None else 1
    if isinstance(failure, SystemExit):
        code = failure.code
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
