"""Work from acceptance to completion with a provider that does nothing: rates, and what the time goes to."""

from __future__ import annotations

from benchmarks.adapters.contract import WorkAdapter
from benchmarks.database import Database
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.draining import drain
from benchmarks.scenarios.work_costs import Costs
from benchmarks.scenarios.working import accept_all, accept_and_run, fresh_numbers

COLUMNS = {
    "rate": "accept to end items/s",
    "accept_rate": "accept alone items/s",
    "run_rate": "run alone items/s",
    "server_us": "server µs CPU/item",
    "producer_us": "producer µs CPU/item",
    "worker_us": "worker µs CPU/item",
    "wal": "WAL bytes/item",
    "accept_server_us": "accept alone: server µs CPU/item",
    "run_server_us": "run alone: server µs CPU/item",
    "run_worker_us": "run alone: worker µs CPU/item",
    "accept_statements": "accept: statements/item",
    "run_statements": "run: statements/item",
    "transactions": "transactions/item",
}
RATE = None
_COUNTED = 5
"""The part of the items, as a divisor, whose statements are counted: logging them costs time."""


async def measure(adapter: WorkAdapter, bench: Bench) -> Measures:
    """Accept and run at the same time, then one after the other, then count statements."""
    async with bench.database(adapter) as database:
        costs = await accept_and_run(adapter, database, bench, scopes=bench.scopes)
        measures = {
            "rate": costs.rate,
            **costs.microseconds,
            "wal": costs.wal / max(1, costs.items),
        }
        if costs.items == bench.items:  # else what was cut would disturb
            measures |= await _apart(adapter, database, bench)
            measures |= await _counted(adapter, database, bench)
    return measures


async def _apart(adapter: WorkAdapter, database: Database, bench: Bench) -> Measures:
    """Accept without a worker, then run one without producers."""
    await database.settle()
    accepted = await _accept(adapter, database, bench, bench.items)
    drained = await drain(adapter, database, jobs=bench.items, limit=bench.limit)
    return {
        "accept_rate": accepted.rate,
        "accept_server_us": accepted.microseconds["server_us"],
        "run_rate": drained.rate,
        "run_server_us": 1e6 * (drained.server_cpu or 0.0) / drained.closed,
        "run_worker_us": 1e6 * drained.worker_cpu / drained.handled,
    }


async def _counted(adapter: WorkAdapter, database: Database, bench: Bench) -> Measures:
    """Count statements, transaction commands included, and committed transactions."""
    await database.log_all_statements()
    items = max(1, bench.items // _COUNTED)
    transactions = await database.transactions()
    start = database.server.log_position()
    await _accept(adapter, database, bench, items)
    accepted = database.server.statements_since(start, database.name)
    start = database.server.log_position()
    await drain(adapter, database, jobs=items, limit=bench.limit)
    run = database.server.statements_since(start, database.name)
    return {
        "accept_statements": accepted / items,
        "run_statements": run / items,
        "transactions": (await database.transactions() - transactions) / items,
    }


async def _accept(adapter: WorkAdapter, database: Database, bench: Bench, count: int) -> Costs:
    """Accept so many items; the sessions are open at both readings, so none escapes the count."""
    async with adapter.acceptor(
        database.dsn, connections=bench.producers, scopes=bench.scopes
    ) as acceptor:
        before = await Costs.now(database)
        await accept_all(acceptor, fresh_numbers(count), producers=bench.producers)
        return (await Costs.now(database)).since(before, items=count)
