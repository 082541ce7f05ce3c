"""Run the benchmarks: `python -m benchmarks.run --help`."""

from __future__ import annotations

import argparse
import importlib
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import uvloop

from benchmarks import machine, report
from benchmarks.adapters import catalogue
from benchmarks.adapters.contract import System
from benchmarks.report import ScenarioResult
from benchmarks.scenarios.bench import Bench, Measures
from benchmarks.server import running_server
from benchmarks.sizes import add_sizes, bench_of

JOB_SCENARIOS = (
    "enqueue_single",
    "enqueue_concurrent",
    "lifecycle",
    "pickup",
    "idle",
    "caller_owned",
    "held_snapshot",
    "aborted_producers",
    "growth",
)
WORK_SCENARIOS = ("work_lifecycle", "work_growth", "work_scopes", "work_discovery")
SCENARIOS = JOB_SCENARIOS + WORK_SCENARIOS

Measure = Callable[[Any, Bench], Awaitable[Measures]]


def main() -> None:
    """Measure every chosen scenario for every chosen system and write the report."""
    options = _options()
    systems, absent = _systems(options)
    for name, reason in absent.items():
        print(f"absent: {name}: {reason}")
    with running_server() as server:
        about = machine.describe(server, [*systems[True], *systems[False]])
        bench = bench_of(server, options)
        results = [
            _measure_scenario(name, systems[name in JOB_SCENARIOS], bench, options.repeat)
            for name in options.scenario
        ]
    paths = report.write(
        options.output,
        time.strftime("%Y%m%d-%H%M%S"),
        machine=about,
        absent=absent,
        options={key: str(value) for key, value in vars(options).items()},
        results=results,
    )
    print("\n" + report.markdown(about, absent, results))
    print("written:", *paths)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names, output = list(catalogue.NAMES), Path(__file__).parent / "results"
    parser.add_argument("--peers", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--repeat", type=int, default=5, help="repeats; the median is reported")
    parser.add_argument("--output", type=Path, default=output, help="directory of the report")
    add_sizes(parser)
    return parser.parse_args()


def _systems(options: argparse.Namespace) -> tuple[dict[bool, list[System]], dict[str, str]]:
    """Return the chosen systems with jobs (True) and with Work (False), and who is absent and why."""
    systems: dict[bool, list[System]] = {True: [], False: []}
    absent: dict[str, str] = {}
    for jobs in {name in JOB_SCENARIOS for name in options.scenario}:
        systems[jobs], missing = catalogue.load_all(catalogue.modules(options.peers, jobs=jobs))
        absent |= missing
    return systems, absent


def _measure_scenario(
    name: str, adapters: list[System], bench: Bench, repeats: int
) -> ScenarioResult:
    """Measure the systems in turn, again and again, so that drift of the machine hits all alike."""
    scenario = importlib.import_module(f"benchmarks.scenarios.{name}")
    result = _empty_result(name, scenario, adapters)
    for repeat in range(repeats):
        for adapter in adapters:
            _measure_once(scenario.measure, adapter, bench, result, repeat)
    return result


def _empty_result(name: str, scenario: ModuleType, adapters: list[System]) -> ScenarioResult:
    title = (scenario.__doc__ or name).strip().splitlines()[0]
    return ScenarioResult(
        name=name,
        title=title,
        columns=scenario.COLUMNS,
        rate=scenario.RATE,
        measures={adapter.name: [] for adapter in adapters},
    )


def _measure_once(
    measure: Measure, adapter: System, bench: Bench, result: ScenarioResult, repeat: int
) -> None:
    """Measure once; a failure is reported as such and does not stop the run."""
    try:
        measures = uvloop.run(_awaited(measure, adapter, bench))
    except Exception as error:  # noqa: BLE001  one system's failure is a result, not the end
        traceback.print_exc()
        result.failures.setdefault(adapter.name, []).append(f"{type(error).__name__}: {error}")
        return
    result.measures[adapter.name].append(measures)
    figures = "  ".join(f"{key}={value:,.2f}" for key, value in measures.items())
    print(f"{result.name} #{repeat + 1} {adapter.name}: {figures or 'does not apply'}", flush=True)


async def _awaited(measure: Measure, adapter: System, bench: Bench) -> Measures:
    return await measure(adapter, bench)


if __name__ == "__main__":
    main()
