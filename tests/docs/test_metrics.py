"""docs/how-to/monitor.md lists the metrics and their labels as the worker exports them."""

import re

from onecommit.telemetry.metrics import METRICS
from onecommit.telemetry.prometheus import PrometheusExporter

from tests.docs.test_pages import text_of

PAGE = text_of("how-to/monitor.md")
FOR_ALL = "every metric that has it"


def test_every_metric_is_listed_as_it_is():
    """Name, type, labels and meaning, in the order of the table in the code; nothing else is listed."""
    listed = re.findall(r"^\| `(onecommit_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", PAGE, re.MULTILINE)
    assert listed == [
        (
            metric.name,
            metric.kind.value,
            ", ".join(f"`{label.name}`" for label in metric.labels),
            metric.meaning,
        )
        for metric in METRICS
    ]


def test_every_label_is_listed_with_its_values():
    section = PAGE.split("\n## Labels\n")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", section, re.MULTILINE)
    for metric in METRICS:
        for label in metric.labels:
            [text] = [
                text for name, of, text in rows if name == label.name and is_of(metric.name, of)
            ]
            listed = {value for value in re.findall(r"`(\w+)`", text) if label.values is not None}
            values = {value for value in label.values or () if not value.startswith("ASDUR")}
            assert listed == values, (metric.name, label.name)


def is_of(metric: str, of: str) -> bool:
    """Whether a row is about this metric: by its name, by the beginning of its name, or by all having it."""
    named = re.findall(r"`(\w+)(…?)`", of)
    return of == FOR_ALL or any(
        metric.startswith(name) if cut else metric == name for name, cut in named
    )


def test_every_expression_names_metrics_and_values_that_exist():
    """An alarm on a name that is not exported would never ring."""
    exported = PrometheusExporter(queues=[], kinds=[], works={}, contracts=[], read=list)
    events = {
        sample.labels["event"]
        for family in exported.registry.collect()
        for sample in family.samples
        if "event" in sample.labels
    }
    section = PAGE.split("\n## What to be woken for\n")[1].split("\n## ")[0]
    names = {name.removesuffix("_bucket") for name in re.findall(r"\bonecommit_\w+", section)}
    assert names
    assert names - {metric.name for metric in METRICS} == set()
    asked = re.search(r'event=~"([^"]*)"', section)
    assert asked
    assert set(asked[1].split("\\|")) - events == set()
