"""Every lane moves: what waits is claimed, and numbers that are missing are settled."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vital_rows import LaneRow
from onecommit.doctor.vitals import Vitals, spoken

STILL = timedelta(minutes=5)
MANY_HOLES = 1_000


def _findings(vitals: Vitals) -> Iterator[Finding]:
    for lane in vitals.lanes:
        if lane.waiting_number is not None:
            yield from _waiting(lane, vitals.health.at if vitals.health else None)
        if lane.holes >= MANY_HOLES or (lane.writers and _old(lane, vitals)):
            yield _unsettled(lane, vitals)


def _waiting(lane: LaneRow, now: datetime | None) -> Iterator[Finding]:
    claimed = f"claimed from {spoken(now - lane.claimed_at)} ago" if now and lane.claimed_at else ""
    last = f"last {claimed}" if claimed else "never claimed from, as far as the ring goes back"
    if lane.paused:
        yield Finding(
            subject=_name(lane),
            problem=f"is paused, and jobs wait in it; {last}",
            remedy="Resume the queue when it may go on.",
            severity=Severity.INFORMATION,
        )
    elif not lane.workers:
        yield Finding(
            subject=_name(lane),
            problem=f"jobs wait in it, and no live worker serves the queue; {last}",
            remedy="Start a worker with this queue.",
            severity=Severity.WARNING,
        )
    elif (
        now is not None
        and now - (lane.claimed_at or lane.waiting_since or now) >= STILL
        and now - (lane.waiting_since or now) >= STILL
    ):
        yield Finding(
            subject=_name(lane),
            problem=f"does not move: jobs wait in it, {lane.workers} live workers serve the queue; {last}",
            remedy="Look whether their slots are full of jobs that run for long, or whether lanes of a higher priority"
            " take them.",
            severity=Severity.WARNING,
        )


def _old(lane: LaneRow, vitals: Vitals) -> bool:
    """Whether one of those that may still fill a hole has had its time, or cannot be seen."""
    ages = {session.pid: session.age for session in vitals.sessions if not session.is_hidden}
    return any(pid not in ages or (ages[pid] or timedelta()) >= STILL for pid in lane.writers)


def _unsettled(lane: LaneRow, vitals: Vitals) -> Finding:
    writers = (
        ", ".join(map(vitals.session, lane.writers))
        or "nobody any more: the next claim settles them"
    )
    return Finding(
        subject=_name(lane),
        problem=f"{lane.holes} ranges of numbers below its frontier are missing (at 2,000 it stops); who may still"
        f" commit jobs there: {writers}",
        remedy="End transactions that enqueued and stay open; enqueue in short transactions.",
        severity=Severity.WARNING,
    )


def _name(lane: LaneRow) -> str:
    return f"lane {lane.lane} (queue {lane.queue}, priority {lane.priority})"


CHECK = VitalCheck(
    name="lanes",
    looks_at="jobs that wait without a worker or a claim, and open transactions for which numbers are kept free",
    findings=_findings,
)
