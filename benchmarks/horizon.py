"""How far back a database's MVCC horizon lies, and what that keeps vacuum from removing."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field

from benchmarks.database import Database

_CHURN = (
    "create table churn (id integer primary key, n bigint not null) with (autovacuum_enabled = off)"
)
_FILL = "insert into churn select id, 0 from generate_series(1, 1000) as id"
_CHANGE = "update churn set n = n + 1"
_AGE = """
    select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0) * 1000,
           coalesce(max(greatest(age(backend_xmin), age(backend_xid))), 0)
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
      and (backend_xmin is not null or backend_xid is not null)
"""
_KEPT = "select n_dead_tup from pg_stat_user_tables where relname = 'churn'"
_PAUSE = 0.1


@dataclass(slots=True, kw_only=True)
class Horizon:
    """What was seen each time: the oldest transaction that vacuum must respect, and what it had to keep."""

    milliseconds: list[float] = field(default_factory=list)
    transactions: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)

    def measures(self, name: str) -> dict[str, float]:
        """The medians, as columns that begin with the name."""
        return {
            f"{name}_ms": statistics.median(self.milliseconds),
            f"{name}_age": statistics.median(self.transactions),
            f"{name}_kept": statistics.median(self.kept),
        }


async def watch_horizon(database: Database, *, seconds: float) -> Horizon:
    """Change a thousand rows of a table of its own ten times a second, vacuum it each time, and look."""
    await database.execute(_CHURN)
    await database.execute(_FILL)
    seen, end = Horizon(), time.monotonic() + seconds
    while time.monotonic() < end:
        await database.execute(_CHANGE)
        await database.execute("vacuum churn")
        [(milliseconds, transactions)] = await database.execute(_AGE)
        [(kept,)] = await database.execute(_KEPT)
        seen.milliseconds.append(float(milliseconds))
        seen.transactions.append(float(transactions))
        seen.kept.append(float(kept))
        await asyncio.sleep(_PAUSE)
    return seen
