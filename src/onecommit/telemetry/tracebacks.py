"""Where an exception or a thread is, in names and line numbers only."""

import sys
import traceback
from collections.abc import Iterable
from pathlib import PurePath
from types import FrameType

_FRAMES = 5


def frames_of(error: BaseException) -> str:
    """Innermost frames of the traceback, outermost first; never the exception's text."""
    return _join(traceback.walk_tb(error.__traceback__))


def frames_of_thread(thread_id: int) -> str:
    """Innermost frames of a running thread, outermost first."""
    frame = sys._current_frames().get(thread_id)  # noqa: SLF001 - the documented way to look at another thread
    return "" if frame is None else _join(reversed(list(traceback.walk_stack(frame))))


def _join(frames: Iterable[tuple[FrameType, int]]) -> str:
    places = [
        f"{PurePath(frame.f_code.co_filename).name}:{line} {frame.f_code.co_name}"
        for frame, line in frames
    ]
    return " > ".join(places[-_FRAMES:])
