"""Transactions that settle a row, with and without completing the job in the same commit."""

from __future__ import annotations

from benchmarks.adapters.contract import Adapter, CallerOwned
from benchmarks.scenarios.bench import Bench, Measures

COLUMNS = {
    "without": "transactions/s without completion",
    "with": "transactions/s with completion",
    "share": "with / without",
}
RATE = None
_CONNECTIONS = 8


async def measure(adapter: Adapter, bench: Bench) -> Measures:
    """Run the same transaction on eight connections, first without, then with completion."""
    if not isinstance(adapter, CallerOwned):
        return {}
    rates = {}
    for complete in (False, True):
        async with bench.database(adapter) as database:
            rates[complete] = await adapter.settle(
                database.dsn, connections=_CONNECTIONS, seconds=bench.seconds, complete=complete
            )
    return {
        "without": rates[False],
        "with": rates[True],
        "share": rates[True] / rates[False],
    }
