"""How many connections a worker process needs, and whether it gets them."""

from dataclasses import dataclass
from enum import Enum, auto

from onecommit.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBudget:
    """What the server grants to the login of the runtime."""

    usable: int
    """At most so many, whoever else is connected."""
    free: int
    """So many more at the moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionNeeds:
    """What one worker process may use at the same time."""

    runtime: int
    """For claims, completions, reconciliation, maintenance, progress, the heartbeat and notices."""
    caller_owned: int
    """Caller-owned jobs that run at the same time; each may hold a transaction."""
    application: int | None
    """The application's own pool, if its size is known."""
    shared_pool: int | None
    """The one pool through which both go, if they share one."""

    @property
    def most(self) -> int:
        """All connections together; an application pool of unknown size counts by its jobs."""
        if self.shared_pool is not None:
            return self.shared_pool
        pool = self.caller_owned if self.application is None else self.application
        return self.runtime + pool


class Supply(Enum):
    """What the server can give now."""

    ENOUGH = auto()
    SCARCE = auto()
    """Not all at the same time, unless other clients leave."""


def admit(needs: ConnectionNeeds, budget: ConnectionBudget | None) -> Supply:
    """Compare; `budget` is None where the server's numbers say nothing, behind a pooler.

    Raises:
        UsageError: Transactions of handlers could take the connections without which the runtime can
            neither report that it lives nor find out what became of an attempt; or the server never
            allows so many connections.
    """
    _require_reserve(needs)
    if budget is None:
        return Supply.ENOUGH
    certain = needs.shared_pool or needs.runtime + (needs.application or 0)
    if certain > budget.usable:
        raise UsageError(
            f"this worker may use {certain} connections, and the server allows {budget.usable}",
            remedy="Lower its queues' concurrency or the pools, or raise max_connections.",
        )
    return Supply.ENOUGH if needs.most <= budget.free else Supply.SCARCE


def _require_reserve(needs: ConnectionNeeds) -> None:
    shared = needs.shared_pool
    if shared is None or needs.caller_owned + needs.runtime <= shared:
        return
    raise UsageError(
        f"{needs.caller_owned} caller-owned jobs at a time and {needs.runtime} connections of the"
        f" runtime need {needs.caller_owned + needs.runtime}, and the shared pool has {shared}",
        remedy="Lower the concurrency of their queues, enlarge the pool, or give the runtime its own.",
    )
