"""Turn the measures of a run into a Markdown page and a JSON file."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.scenarios.bench import Measures


@dataclass(slots=True, kw_only=True)
class ScenarioResult:
    """All repeats of one scenario, by system, with the failures that took the place of figures."""

    name: str
    title: str
    columns: dict[str, str]
    rate: str | None
    measures: dict[str, list[Measures]] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)

    def median(self, system: str, column: str) -> float | None:
        """Return the median over the repeats; None when no repeat has the figure."""
        values = self.values(system, column)
        return statistics.median(values) if values else None

    def values(self, system: str, column: str) -> list[float]:
        """Return the figures of all repeats."""
        return [row[column] for row in self.measures.get(system, []) if column in row]


def markdown(machine: dict[str, Any], absent: dict[str, str], results: list[ScenarioResult]) -> str:
    """Render the page: the machine, one table per scenario, and who was absent and why."""
    parts = [_machine_lines(machine)]
    parts += [_table(result) for result in results]
    if absent:
        parts.append("\n".join(f"Absent: {name} ({reason})." for name, reason in absent.items()))
    return "\n\n".join(parts) + "\n"


def write(
    directory: Path,
    stamp: str,
    *,
    machine: dict[str, Any],
    absent: dict[str, str],
    options: dict[str, Any],
    results: list[ScenarioResult],
) -> list[Path]:
    """Write `<stamp>.md` and `<stamp>.json` and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    page, data = directory / f"{stamp}.md", directory / f"{stamp}.json"
    page.write_text(markdown(machine, absent, results))
    document = {
        "machine": machine,
        "options": options,
        "absent": absent,
        "scenarios": {
            result.name: {"measures": result.measures, "failures": result.failures}
            for result in results
        },
    }
    data.write_text(json.dumps(document, indent=2) + "\n")
    return [page, data]


def _machine_lines(machine: dict[str, Any]) -> str:
    systems = ", ".join(
        f"{name} {system['version']}" for name, system in machine["systems"].items()
    )
    load = ", ".join(f"{value:.2f}" for value in machine["load_average"])
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB; "
        f"load at the start {load}. PostgreSQL {machine['postgresql']}, "
        f"Python {machine['python']}. {systems}."
    )


def _table(result: ScenarioResult) -> str:
    columns = [key for key in result.columns if any(result.values(s, key) for s in result.measures)]
    reference = result.median("bare", result.rate) if result.rate else None
    header = ["system", *(result.columns[key] for key in columns)]
    if reference:
        header.append("of bare")
    rows = [_row(result, system, columns, reference) for system in result.measures]
    lines = [line(header), line(["---"] + ["---:"] * (len(header) - 1)), *map(line, rows)]
    failures = [
        f"{system} failed {len(errors)} times, first with: {errors[0].splitlines()[0]}"
        for system, errors in result.failures.items()
    ]
    return "\n\n".join([f"### {result.title}", "\n".join(lines), *failures])


def _row(
    result: ScenarioResult, system: str, columns: list[str], reference: float | None
) -> list[str]:
    cells = [system, *(_cell(result, system, key) for key in columns)]
    if reference and result.rate:
        rate = result.median(system, result.rate)
        cells.append("—" if rate is None else f"{rate / reference:.2f}")
    return cells


def _cell(result: ScenarioResult, system: str, column: str) -> str:
    median = result.median(system, column)
    if median is not None:
        return number(median)
    return "failed" if result.failures.get(system) else "—"


def number(value: float) -> str:
    """Render a figure with three digits or so."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def line(cells: list[str]) -> str:
    """Render a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"
