"""Where the store's notices go."""

from collections.abc import Callable, Iterable


class NoticeRouter:
    """Wakes the queue whose lane has ready jobs, and whoever cares for schedules and cancellations.

    Lanes are adopted while the worker runs. A notice from an unknown one wakes every queue, and
    `ask_lanes` is told to find out whose it is; lanes of queues that are not ours are then ignored.
    """

    def __init__(
        self,
        *,
        wake: Callable[[str | None], None],
        ask_lanes: Callable[[int], None],
        on_schedule: Callable[[], None],
        on_cancellation: Callable[[], None],
        on_callback: Callable[[int], None],
        on_work: Callable[[], None],
    ) -> None:
        self._wake = wake
        self._ask_lanes = ask_lanes
        self._on_schedule = on_schedule
        self._on_cancellation = on_cancellation
        self._on_callback = on_callback
        self._on_work = on_work
        self._queue_of: dict[int, str] = {}
        self._foreign: set[int] = set()

    def learn(self, queue: str, lanes: Iterable[int]) -> None:
        """These lanes belong to a queue of ours."""
        self._queue_of.update(dict.fromkeys(lanes, queue))

    def settle(self, lane: int) -> None:
        """All our lanes are known: if this one is not among them, it is somebody else's."""
        if lane not in self._queue_of:
            self._foreign.add(lane)

    def route(self, payload: str) -> None:
        """Hand one notice to whom it concerns; the empty one concerns every queue."""
        match payload[:1]:
            case "":
                self._wake(None)
                self._on_schedule()
                self._on_cancellation()
                self._on_work()
            case "r" if payload[1:].isdecimal():
                self._ready(int(payload[1:]))
            case "b" if payload[1:].isdecimal():
                self._on_callback(int(payload[1:]))
            case "s":
                self._on_schedule()
            case "c":
                self._on_cancellation()
            case "w":
                self._on_work()
            case _:
                return  # of a later version

    def _ready(self, lane: int) -> None:
        queue = self._queue_of.get(lane)
        if queue is not None:
            self._wake(queue)
        elif lane not in self._foreign:
            self._wake(None)
            self._ask_lanes(lane)
