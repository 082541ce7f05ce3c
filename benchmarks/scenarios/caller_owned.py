"""Transactions that settle a row, with and without completing the job in the same commit, and their MVCC horizon."""

from __future__ import annotations

from benchmarks.adapters.contract import Adapter, CallerOwned, More
from benchmarks.horizon import watch_horizon
from benchmarks.scenarios.bench import Bench, Measures

COLUMNS = {
    "without": "transactions/s without completion",
    "with": "transactions/s with completion",
    "share": "with / without",
    "alone": "transactions alone/s",
    "nothing_share": "with a statement that does nothing / alone",
    "completion_share": "with completion / alone",
    "short_ms": "short: oldest transaction, ms",
    "short_age": "short: its age in transactions",
    "short_kept": "short: dead tuples kept from vacuum",
    "held_ms": "held: oldest transaction, ms",
    "held_age": "held: its age in transactions",
    "held_kept": "held: dead tuples kept from vacuum",
}
RATE = None
_CONNECTIONS = 8
_CLAIMED = 4_000
_MORE: tuple[More, ...] = ("", "nothing", "completion")
_ANSWER = 1.0
"""Seconds that the provider takes."""


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Run the same transaction on eight connections, without and with completion; then beside a provider."""
    if not isinstance(adapter, CallerOwned):
        return {}
    rates = {}
    for complete in (False, True):
        async with bench.database(adapter) as database:
            rates[complete] = await adapter.settle(
                database.dsn, connections=_CONNECTIONS, seconds=bench.seconds, complete=complete
            )
    alone: dict[More, float] = {}
    for more in _MORE:
        async with bench.database(adapter) as database:
            alone[more] = await adapter.settle_claimed(
                database.dsn, connections=_CONNECTIONS, count=_CLAIMED, more=more
            )
    return {
        "without": rates[False],
        "with": rates[True],
        "share": rates[True] / rates[False],
        "alone": alone[""],
        "nothing_share": alone["nothing"] / alone[""],
        "completion_share": alone["completion"] / alone[""],
        **await _horizon("short", adapter, bench, held=False),
        **await _horizon("held", adapter, bench, held=True),
    }


async def _horizon(name: str, adapter: Adapter, bench: Bench, *, held: bool) -> Measures:
    """How far back the horizon lies while handlers wait for the provider outside or inside their transactions."""
    assert isinstance(adapter, CallerOwned)
    async with (
        bench.database(adapter) as database,
        adapter.asking(database.dsn, connections=_CONNECTIONS, answer=_ANSWER, held=held),
    ):
        return (await watch_horizon(database, seconds=bench.seconds)).measures(name)
