"""What the leader does for everyone."""

from typing import NamedTuple

from onecommit.calls.call import Call, Routine, Rows, read_scalar

PROMOTE_JOBS = Routine(
    "promote_jobs", {"p_limit": "integer", "p_epoch": "bigint"}, ("promoted", "next_in_us")
)
RESCUE_JOBS = Routine(
    "rescue_jobs",
    {"p_window_us": "bigint", "p_limit": "integer", "p_epoch": "bigint"},
    ("rescued", "more", "job_ids"),
)
TEND_RING = Routine("tend_ring", {"p_epoch": "bigint"}, ("action", "chapter"))
ADOPT_LANES = Routine("adopt_lanes", {"p_queue": "text", "p_epoch": "bigint"}, ("adopt_lanes",))
QUEUE_LANES = Routine("queue_lanes", {"p_queue": "text"}, ("queue_lanes",))


class Promotion(NamedTuple):
    """Scheduled jobs that became ready, and when the next is due."""

    promoted: int
    next_in_us: int | None

    @property
    def is_complete(self) -> bool:
        """Whether nothing that is due is left: not even in the hands of a transaction that promotes it too."""
        return self.promoted == 0 and self.next_in_us != 0


class Rescue(NamedTuple):
    """Attempts taken from dead workers or past their deadline."""

    rescued: int
    more: bool
    job_ids: list[int]


class RingStep(NamedTuple):
    """One step of ring maintenance: rotate, reclaim, evacuate or none."""

    action: str
    chapter: int | None


def promote_jobs(*, limit: int, epoch: int) -> Call[Promotion]:
    """Make due scheduled jobs ready."""
    return Call(PROMOTE_JOBS, (str(limit), str(epoch)), _read_promotion)


def rescue_jobs(*, window_us: int, limit: int, epoch: int) -> Call[Rescue]:
    """Take back attempts of workers silent for longer than the window, or past their deadline."""
    return Call(RESCUE_JOBS, (str(window_us), str(limit), str(epoch)), _read_rescue)


def tend_ring(*, epoch: int) -> Call[RingStep]:
    """Do one step of ring maintenance, if one is due."""
    return Call(TEND_RING, (str(epoch),), _read_step)


def adopt_lanes(queue: str, *, epoch: int) -> Call[list[int]]:
    """Make sure that the queue has its default lane; returns the queue's lanes."""
    return Call(ADOPT_LANES, (queue, str(epoch)), _read_lanes)


def queue_lanes(queue: str | None) -> Call[list[int]]:
    """The lanes of a queue."""
    return Call(QUEUE_LANES, (queue,), _read_lanes)


def _read_promotion(rows: Rows) -> Promotion:
    return Promotion(*rows[0])


def _read_rescue(rows: Rows) -> Rescue:
    return Rescue(*rows[0])


def _read_step(rows: Rows) -> RingStep:
    return RingStep(*rows[0])


def _read_lanes(rows: Rows) -> list[int]:
    return list(read_scalar(rows) or ())
