"""Work from acceptance to completion with a provider that does nothing: rates, and what the time goes to."""

from __future__ import annotations

import time

from benchmarks.adapters.contract import WorkAdapter
from benchmarks.database import Database
from benchmarks.scenarios.accepting import accept_all
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.scenarios.draining import drain
from benchmarks.scenarios.work_costs import Costs
from benchmarks.waiting import wait_until
from benchmarks.worker_process import running_worker

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
_WARM_UP = 10
"""The part of the items, as a divisor, that is done before anything is measured."""
_COUNTED = 5
"""Likewise the part whose statements are counted, apart because logging them costs time."""


async def measure(adapter: WorkAdapter, bench: Bench) -> Measures:
    """Accept and do at the same time, then one after the other, then count statements."""
    async with bench.database(adapter) as database:
        measures = await _together(adapter, database, bench)
        measures |= await _apart(adapter, database, bench)
        measures |= await _counted(adapter, database, bench)
    return measures


async def _together(adapter: WorkAdapter, database: Database, bench: Bench) -> Measures:
    """Accept while one worker runs what is accepted; timed from the first accept to the last end."""
    step = max(1, bench.items // 100)
    warm_up = step * (100 // _WARM_UP)
    total = warm_up + bench.items
    async with (
        adapter.acceptor(
            database.dsn, connections=bench.producers, scopes=bench.scopes
        ) as acceptor,
        running_worker(adapter, database.dsn, expected=total, step=step) as worker,
    ):

        async def accept_and_wait(numbers: range, limit: float) -> None:
            await accept_all(acceptor, numbers, producers=bench.producers)
            deadline = time.monotonic() + limit
            await worker.until(numbers.stop, deadline)
            if not await wait_until(closed, deadline=deadline):
                raise RuntimeError("Not every item was done within the limit; raise --limit.")

        async def closed() -> bool:
            return await adapter.open_jobs(database.dsn) == 0

        await accept_and_wait(range(warm_up), bench.limit)
        await database.settle()
        before = await Costs.now(database, worker)
        await accept_and_wait(range(warm_up, total), bench.limit)
        costs = (await Costs.now(database, worker)).since(before)
    return {
        "rate": bench.items / costs.seconds,
        **costs.microseconds(bench.items),
        "wal": costs.wal / bench.items,
    }


async def _apart(adapter: WorkAdapter, database: Database, bench: Bench) -> Measures:
    """Accept without a worker, then run one without producers."""
    await database.settle()
    async with adapter.acceptor(
        database.dsn, connections=bench.producers, scopes=bench.scopes
    ) as acceptor:
        await accept_all(acceptor, _numbers(1, bench.items // _WARM_UP), producers=bench.producers)
        before = await Costs.now(database)
        seconds = await accept_all(acceptor, _numbers(2, bench.items), producers=bench.producers)
        accepted = (await Costs.now(database)).since(before)
    jobs = bench.items + bench.items // _WARM_UP
    drained = await drain(adapter, database, jobs=jobs, limit=bench.limit)
    return {
        "accept_rate": bench.items / seconds,
        "accept_server_us": accepted.microseconds(bench.items)["server_us"],
        "run_rate": drained.rate,
        "run_worker_us": 1e6 * drained.worker_cpu / drained.handled,
        "run_server_us": 1e6 * (drained.server_cpu or 0.0) / drained.closed,
    }


async def _counted(adapter: WorkAdapter, database: Database, bench: Bench) -> Measures:
    """Count statements, transaction commands included, and committed transactions."""
    await database.log_all_statements()
    items = max(1, bench.items // _COUNTED)
    transactions = await database.transactions()
    start = database.server.log_position()
    async with adapter.acceptor(
        database.dsn, connections=bench.producers, scopes=bench.scopes
    ) as acceptor:
        await accept_all(acceptor, _numbers(3, items), producers=bench.producers)
    accepted = database.server.statements_since(start, database.name)
    start = database.server.log_position()
    await drain(adapter, database, jobs=items, limit=bench.limit)
    run = database.server.statements_since(start, database.name)
    return {
        "accept_statements": accepted / items,
        "run_statements": run / items,
        "transactions": (await database.transactions() - transactions) / items,
    }


def _numbers(phase: int, count: int) -> range:
    """Numbers that no other phase has accepted."""
    first = phase * 10_000_000
    return range(first, first + count)
