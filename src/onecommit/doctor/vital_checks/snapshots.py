"""Nobody holds vacuum back for long: tables of leases, schedules and Work would grow with each change."""

from collections.abc import Iterator
from datetime import timedelta

from onecommit.doctor.finding import Finding, Severity, VitalCheck
from onecommit.doctor.vital_rows import HolderRow
from onecommit.doctor.vitals import Vitals, spoken

LONG = timedelta(minutes=5)
MANY = 1_000_000
"""Transactions that began since: what is held without a time of its own is judged by them."""


def _findings(vitals: Vitals) -> Iterator[Finding]:
    for session in vitals.sessions:
        if session.has_snapshot and session.age is not None and session.age >= LONG:
            yield Finding(
                subject=f"pid {session.pid}",
                problem=f"{session.role}: {session.state}, its transaction has been open for {spoken(session.age)}"
                " and holds vacuum back",
                remedy=f"Find out what it does, then: select pg_terminate_backend({session.pid});",
                severity=Severity.WARNING,
            )
    for holder in vitals.holders:
        if _is_long(holder):
            yield Finding(
                subject=f"{holder.kind} {holder.name}",
                problem=_problem(holder),
                remedy=_REMEDIES[holder.kind],
                severity=Severity.WARNING,
            )
    hidden = sum(session.is_hidden for session in vitals.sessions)
    if hidden:
        yield Finding(
            subject="sessions",
            problem=f"{hidden} of other roles are hidden from this login, so their transactions are not judged",
            remedy="grant pg_read_all_stats to the login that looks, or look as a member of pg_monitor.",
            severity=Severity.INFORMATION,
        )


def _is_long(holder: HolderRow) -> bool:
    if holder.age is not None:
        return holder.age >= LONG
    return not holder.is_active or holder.transactions >= MANY


def _problem(holder: HolderRow) -> str:
    since = f"for {spoken(holder.age)}, " if holder.age is not None else ""
    idle = "" if holder.is_active else "is not in use, and "
    return f"{idle}holds vacuum back {since}by {holder.transactions} transactions"


_REMEDIES = {
    "prepared transaction": "commit prepared or rollback prepared, as its transaction manager says.",
    "replication slot": "Let its consumer catch up, or drop a slot that nobody needs: select pg_drop_replication_slot(…);",
    "standby": "End the long query on the standby, or switch hot_standby_feedback off there.",
}

CHECK = VitalCheck(
    name="snapshots",
    looks_at="transactions, prepared ones, replication slots and standbys that hold vacuum back",
    findings=_findings,
)
