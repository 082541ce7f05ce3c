"""Cost of an item of Work in front of growing stores: nine items of ten done, one waiting for tomorrow."""

from __future__ import annotations

from benchmarks.adapters.contract import Storing, WorkAdapter
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.working import accept_and_run

COLUMNS = {
    "rate_1": "items/s, smallest store",
    "rate_2": "items/s, middle store",
    "rate_3": "items/s, largest store",
    "cpu_1": "µs CPU/item, smallest store",
    "cpu_2": "µs CPU/item, middle store",
    "cpu_3": "µs CPU/item, largest store",
    "share": "µs largest / smallest",
}
RATE = None
_WAITING = 0.1


async def measure(adapter: WorkAdapter, bench: Bench) -> Measures:
    """Let one store grow and accept and run the same number of items at each of its sizes."""
    if not isinstance(adapter, Storing):
        return {}
    measures: Measures = {}
    stored = 0
    async with bench.database(adapter) as database:
        for position, size in enumerate(bench.stores, 1):
            await adapter.store(
                database.dsn,
                first=stored,
                count=max(0, size - stored),
                scopes=bench.scopes,
                waiting=_WAITING,
            )
            stored = max(stored, size)
            costs = await accept_and_run(adapter, database, bench, scopes=bench.scopes)
            measures[f"rate_{position}"] = costs.rate
            measures[f"cpu_{position}"] = costs.all_microseconds
    measures["share"] = measures[f"cpu_{len(bench.stores)}"] / measures["cpu_1"]
    return measures
