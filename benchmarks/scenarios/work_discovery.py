"""Time of a look for Work that is due, among many items of which one in a hundred is."""

from __future__ import annotations

import math
import statistics
import time

from benchmarks.adapters.contract import Discovering, WorkAdapter
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.work_costs import Costs

COLUMNS = {
    "p50": "p50 ms",
    "p99": "p99 ms",
    "server_us": "server µs CPU",
    "full_p50": "p50 ms, largest look",
    "full_p99": "p99 ms, largest look",
    "full_server_us": "server µs CPU, largest look",
    "found": "items found",
    "full_found": "items found, largest look",
}
RATE = None
_WARM_UP = 50


async def measure(adapter: WorkAdapter, bench: Bench) -> Measures:
    """Look again and again at a store of the largest size; nothing is claimed meanwhile."""
    if not isinstance(adapter, Discovering):
        return {}
    measures: Measures = {}
    async with bench.database(adapter) as database:
        await adapter.store_due(database.dsn, count=max(bench.stores), scopes=bench.scopes)
        await database.settle()
        for prefix, largest in (("", False), ("full_", True)):
            async with adapter.looks(database.dsn, largest=largest) as look:
                found = [await look() for _ in range(_WARM_UP)][-1]
                before = await Costs.now(database)
                times = []
                for _ in range(bench.looks):
                    started = time.perf_counter()
                    await look()
                    times.append(1000 * (time.perf_counter() - started))
                costs = (await Costs.now(database)).since(before, items=bench.looks)
            measures[f"{prefix}server_us"] = costs.microseconds["server_us"]
            measures[f"{prefix}found"] = found
            measures[f"{prefix}p50"] = statistics.median(times)
            measures[f"{prefix}p99"] = sorted(times)[math.ceil(0.99 * len(times)) - 1]
    return measures
