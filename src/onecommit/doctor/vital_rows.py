"""What the doctor reads of a store at work, one class for each kind of row."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRow:
    """The way from here to the server."""

    is_standby: bool
    is_pooled: bool
    """Somebody else than the process that greeted us answers."""
    is_heard: bool | None
    """Whether a notice of ours came back; None if none was sent: by a standby, or for want of a second connection."""
    queue_usage: float
    """How full the server's queue of notices is, from 0 to 1."""
    max_connections: int
    skew: timedelta
    """How far the server's clock is ahead of ours."""
    uncertainty: timedelta
    """The skew may be wrong by so much: half of the time that the question took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session in this database; whoever may not see it whole sees its pid and role."""

    pid: int
    role: str | None
    is_hidden: bool
    state: str | None
    age: timedelta | None
    """Since its transaction began; None if none is open."""
    has_snapshot: bool
    """Whether it holds the horizon of vacuum back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderRow:
    """Anything but a session that holds the horizon of vacuum back: a slot, a prepared transaction, a standby."""

    kind: str
    """replication slot, prepared transaction or standby."""
    name: str
    is_active: bool
    age: timedelta | None
    """Of a prepared transaction."""
    transactions: int
    """How many have begun since the oldest that it holds on to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRow:
    """A transaction that holds a lock on a table of the ring."""

    pid: int | None
    """None: a prepared transaction."""
    transaction: str
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """A row of lane_health()."""

    lane: int
    queue: str
    priority: int
    paused: bool
    workers: int
    claimed_at: datetime | None
    waiting_number: int | None
    waiting_since: datetime | None
    holes: int
    writers: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow:
    """A row of dead_letter_counts()."""

    queue: str
    dead: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRow:
    """A row of work_counts()."""

    state: str
    items: int
