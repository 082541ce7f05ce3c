"""Which statements of a system of Work take the server's time: `python -m benchmarks.statements --help`."""

from __future__ import annotations

import argparse
from typing import Any

import uvloop

from benchmarks.adapters import catalogue
from benchmarks.adapters.contract import WorkAdapter
from benchmarks.report import line, number
from benchmarks.scenarios.bench import Bench
from benchmarks.scenarios.working import accept_and_run
from benchmarks.server import running_server
from benchmarks.sizes import add_sizes, bench_of

_SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",
    "pg_stat_statements.track_planning": "on",
}
_COLUMNS = ("calls/item", "plan µs/item", "execute µs/item", "buffers/item", "statement")
# Of the measured database alone: the harness and the setup have statements too.
_SLOWEST = """
    select calls, 1000 * total_plan_time, 1000 * total_exec_time, shared_blks_hit + shared_blks_read,
           left(regexp_replace(query, '\\s+', ' ', 'g'), 150)
    from pg_stat_statements s join pg_database d on d.oid = s.dbid and d.datname = current_database()
    where query !~* '^(checkpoint|analyze|vacuum|create|do )'
    order by total_plan_time + total_exec_time desc limit 40
"""


def main() -> None:
    """Accept and run items of Work and print the statements that took longest.

    Times are of clocks, not of processors, and a statement contains those that it calls.
    """
    options = _options()
    adapter: WorkAdapter = catalogue.load(
        catalogue.modules([options.system], jobs=False)[options.system]
    )
    with running_server(_SETTINGS) as server:
        rows = uvloop.run(_slowest(adapter, bench_of(server, options)))
    print(line(list(_COLUMNS)))
    print(line(["---:"] * (len(_COLUMNS) - 1) + ["---"]))
    for *figures, query in rows:
        cells = [number(float(figure) / options.items) for figure in figures]
        print(line([*cells, f"`{query}`".replace("|", "¦")]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", choices=catalogue.WORK_SYSTEMS, default="onecommit")
    add_sizes(parser)
    return parser.parse_args()


async def _slowest(adapter: WorkAdapter, bench: Bench) -> list[tuple[Any, ...]]:
    async with bench.database(adapter) as database:
        await database.execute("create extension pg_stat_statements")

        async def begin() -> None:
            await database.execute("select pg_stat_statements_reset()")

        await accept_and_run(adapter, database, bench, scopes=bench.scopes, begin=begin)
        return await database.execute(_SLOWEST)


if __name__ == "__main__":
    main()
