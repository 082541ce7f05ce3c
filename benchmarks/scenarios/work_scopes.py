"""Cost of an item of Work that is spread over a growing number of scopes."""

from __future__ import annotations

from benchmarks.adapters.contract import Storing, WorkAdapter
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.working import accept_and_run

COLUMNS = {
    "rate_1": "items/s, fewest scopes",
    "rate_2": "items/s, middle",
    "rate_3": "items/s, most scopes",
    "cpu_1": "µs CPU/item, fewest scopes",
    "cpu_2": "µs CPU/item, middle",
    "cpu_3": "µs CPU/item, most scopes",
    "share": "µs most / fewest",
}
RATE = None


async def measure(adapter: WorkAdapter, bench: Bench) -> Measures:
    """Accept and run the same number of items in so many scopes, each time in a fresh database."""
    if not isinstance(adapter, Storing):
        return {}  # it knows no scopes
    measures: Measures = {}
    for position, scopes in enumerate(bench.scope_counts, 1):
        async with bench.database(adapter) as database:
            costs = await accept_and_run(adapter, database, bench, scopes=scopes)
        measures[f"rate_{position}"] = costs.rate
        measures[f"cpu_{position}"] = costs.all_microseconds
    measures["share"] = measures[f"cpu_{len(bench.scope_counts)}"] / measures["cpu_1"]
    return measures
