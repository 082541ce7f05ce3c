"""Labels are closed: whatever an event carries, only names of ours and registered names come out."""

import ast
from pathlib import Path

import pytest

import onecommit
from onecommit.domain.work import Safety
from onecommit.telemetry.distribution import Distribution
from onecommit.telemetry.events import (
    AttemptFailed,
    Event,
    StaleAttempt,
    WorkAttemptEnded,
    WorkAttemptRefused,
    WorkMoved,
    WorkSuspended,
)
from onecommit.telemetry.metrics import CODE, FAILURE, METRICS, Reading
from onecommit.telemetry.prometheus import PrometheusExporter
from onecommit.worker.work.invocations import Stop

WORKER = Path(onecommit.__file__).parent / "worker"
NAMES = {"job": 7, "attempt": 1, "run_lease": 1}
WORK = {"work": 7, "attempt": 1}
LATER = ("0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0", "300.0", "+Inf")
ENDED = {"event": "succeeded", "outcome": "completed", "state": None}


def exporter(*readings: Reading) -> PrometheusExporter:
    return PrometheusExporter(
        queues=["email"],
        kinds=["send"],
        works={"charge/1": Safety.MANUAL_RESOLUTION},
        contracts=["charge"],
        read=lambda: readings,
    )


def samples(exported: PrometheusExporter, name: str) -> dict[tuple[str, ...], float]:
    """The samples that are not zero, by the values of their labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in exported.registry.collect()
        for sample in family.samples
        if sample.name == name and sample.value
    }


@pytest.mark.parametrize(
    ("event", "metric", "labels"),
    [
        (
            AttemptFailed(kind="send", code="timeout", failure="E", frames="", **NAMES),
            "onecommit_attempts_failed_total",
            ("send", "timeout"),
        ),
        (
            AttemptFailed(kind="secret", code="secret", failure="E", frames="", **NAMES),
            "onecommit_attempts_failed_total",
            ("other", "other"),
        ),
        (
            StaleAttempt(kind="secret", wanted="secret", **NAMES),
            "onecommit_attempts_stale_total",
            ("other",),
        ),
        (
            WorkAttemptEnded(contract="charge/1", code="app.secret", **WORK, **ENDED),
            "onecommit_work_attempts_total",
            ("manual_resolution", "succeeded", "completed", "other"),
        ),
        (
            WorkSuspended(contract="secret/1", code="ASDUR106", **WORK, **ENDED),
            "onecommit_work_suspended_total",
            ("other", "ASDUR106"),
        ),
        (
            WorkSuspended(contract="charge/1", code=None, **WORK, **ENDED),
            "onecommit_work_attempts_total",
            ("manual_resolution", "succeeded", "completed", "none"),
        ),
        (
            WorkAttemptRefused(contract="charge/1", code="ASDUR105", **WORK),
            "onecommit_work_refused_total",
            ("manual_resolution", "ASDUR105"),
        ),
        (
            WorkMoved(contract="charge/1", code="runtime_epoch_mismatch", **WORK),
            "onecommit_work_moved_total",
            ("manual_resolution", "runtime_epoch_mismatch"),
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else "",
)
def test_an_event_is_counted_once_under_closed_labels(event, metric, labels):
    exported = exporter()
    exported.count(event)
    assert samples(exported, metric) == {labels: 1}
    watched = {(event.name,): 1} if event.level >= 30 else {}
    assert samples(exported, "onecommit_events_total") == watched
    assert b"secret" not in exported.expose("")[1]


def test_what_an_alarm_asks_for_is_there_before_it_happens():
    """A counter that begins at its first increment would hide it from `increase`."""
    _, text = exporter().expose("")
    for series in (
        b'onecommit_events_total{event="heartbeat.stale"} 0.0',
        b'onecommit_attempts_stale_total{wanted="completed"} 0.0',
        b'onecommit_work_suspended_total{code="ASDUR106",safety="manual_resolution"} 0.0',
        b'onecommit_work_moved_total{code="runtime_epoch_mismatch",safety="manual_resolution"} 0.0',
    ):
        assert series in text


def test_a_reading_of_a_name_that_is_not_served_is_other():
    exported = exporter(Reading("onecommit_attempts_running", 3, ("secret",)))
    assert samples(exported, "onecommit_attempts_running") == {("other",): 3}


def test_a_measurement_goes_to_its_own_kind():
    exported = exporter()
    exported.observer("onecommit_handler_seconds", "send")(0.3)
    exported.observer("onecommit_completer_batch_attempts")(7)
    assert samples(exported, "onecommit_handler_seconds_sum") == {("send",): 0.3}
    buckets = samples(exported, "onecommit_handler_seconds_bucket")
    assert set(buckets) == {("send", bound) for bound in LATER}
    assert samples(exported, "onecommit_completer_batch_attempts_sum") == {(): 7}


def test_a_measurement_counts_in_each_bucket_that_holds_it():
    """A bound belongs to its bucket, and what is larger than all of them counts in the last one."""
    distribution = Distribution((1, 2.5))
    for measured in (0.5, 1, 2, 9):
        distribution.observe(measured)
    assert distribution.buckets() == [(1, 2), (2.5, 3), (float("inf"), 4)]
    assert distribution.total == 12.5


def test_the_table_names_each_metric_once_and_counters_as_counters():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert {m.name for m in METRICS if m.name.endswith("_total")} == {
        m.name for m in METRICS if m.kind == "counter"
    }


def codes_in(*files: str) -> set[str]:
    """Each text that is written as ``code="…"``."""
    return {
        node.value.value
        for file in files
        for node in ast.walk(ast.parse((WORKER / file).read_text()))
        if isinstance(node, ast.keyword) and node.arg == "code"
        if isinstance(node.value, ast.Constant)
    }


def test_every_code_of_a_failed_attempt_has_its_value():
    """Whoever adds a code to an end of attempts says here whether it is reported as a failure."""
    not_failures = {"retry_after", "cancelled", "released", "shutdown", "unknown_kind"}
    reported_by_events_of_their_own = {"not_finalized", "no_receipt"}
    found = codes_in("jobs/ending.py", "jobs/executor.py", "jobs/follow_ups.py")
    assert found - not_failures - reported_by_events_of_their_own == set(FAILURE.values)


def test_every_code_that_the_worker_gives_an_attempt_of_work_has_its_value():
    assert codes_in("work/ending.py") | {stop.value for stop in Stop} <= set(CODE.values)
