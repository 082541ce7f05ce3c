"""Exports the metrics of one worker to Prometheus; needs the extra `metrics`."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from onecommit.domain.work import Safety
from onecommit.errors import AmbiguousOutcome, ContractUnavailable
from onecommit.telemetry import events
from onecommit.telemetry.attempt_events import AttemptFailed, StaleAttempt
from onecommit.telemetry.distribution import Distribution
from onecommit.telemetry.event import Event
from onecommit.telemetry.metrics import METRICS, NONE, OTHER, Metric, MetricKind, Reading
from onecommit.telemetry.work_events import (
    WorkAttemptEnded,
    WorkAttemptRefused,
    WorkMoved,
    WorkSuspended,
)

_BY_NAME = {metric.name: metric for metric in METRICS}
_FAILED = "onecommit_attempts_failed_total"
_STALE = "onecommit_attempts_stale_total"
_EVENTS = "onecommit_events_total"
_WORK = "onecommit_work_attempts_total"
_SUSPENDED = "onecommit_work_suspended_total"
_REFUSED = "onecommit_work_refused_total"
_MOVED = "onecommit_work_moved_total"
_COUNTED = (_FAILED, _STALE, _EVENTS, _WORK, _SUSPENDED, _REFUSED, _MOVED)
"""What events are counted by; every other counter and gauge is read from the worker when asked for."""

_WAITS_WITH = (AmbiguousOutcome.code, ContractUnavailable.code, "runtime_epoch_mismatch")
"""The codes of Work that waits for an operator."""


def _watched() -> Iterator[str]:
    """The names of the events that somebody may have to act on."""
    for value in vars(events).values():
        named = isinstance(value, type) and issubclass(value, Event) and "name" in vars(value)
        if named and value.level >= logging.WARNING:
            yield value.name


class PrometheusExporter:
    """Counts events as they come, and reads the rest when somebody scrapes.

    Args:
        queues: The queues that the worker serves.
        kinds: The kinds of jobs that it knows.
        works: The safety of each contract that it runs, by ``name/version``.
        contracts: The names of those contracts.
        read: Called at each scrape, in the scraping thread.
    """

    def __init__(
        self,
        *,
        queues: Iterable[str],
        kinds: Iterable[str],
        works: Mapping[str, Safety],
        contracts: Iterable[str],
        read: Callable[[], Iterable[Reading]],
    ) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._works = dict(works)
        self._registered = {
            "queue": frozenset(queues),
            "kind": frozenset(kinds),
            "contract": frozenset(contracts),
            "event": frozenset(_watched()),
        }
        self._counters = {name: self._counter(_BY_NAME[name]) for name in _COUNTED}
        self._distributions: dict[str, dict[tuple[str, ...], Distribution]] = {
            metric.name: {} for metric in METRICS if metric.kind is MetricKind.HISTOGRAM
        }
        self._count_by_class: dict[type[Event], Callable[..., None]] = {
            AttemptFailed: self._count_failure,
            StaleAttempt: self._count_stale,
            WorkAttemptEnded: self._count_work,
            WorkSuspended: self._count_suspension,
            WorkAttemptRefused: self._count_refusal,
            WorkMoved: self._count_move,
        }
        self._begin_at_zero()
        self.registry.register(_Families(self._measured, lambda: self._read(read())))
        ProcessCollector(registry=self.registry)

    def count(self, event: Event) -> None:
        """Count the event; callable from any thread."""
        if event.name in self._registered["event"]:
            self._add(_EVENTS, event.name)
        count = self._count_by_class.get(type(event))
        if count is not None:
            count(event)

    def observer(self, metric: str, *labels: str) -> Callable[[float], None]:
        """What measurements are given to, by one thread."""
        declared = _BY_NAME[metric]
        closed = tuple(self._closed(declared, labels))
        distributions = self._distributions[metric]
        return distributions.setdefault(closed, Distribution(declared.buckets)).observe

    def expose(self, accept: str) -> tuple[str, bytes]:
        """Content type and text of everything, in the form that the ``Accept`` header prefers."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self.registry)

    # --- instruments

    def _counter(self, metric: Metric) -> Counter:
        names = [label.name for label in metric.labels]
        return Counter(metric.name, metric.meaning, names, registry=self.registry)

    def _begin_at_zero(self) -> None:
        """A counter that begins at its first increment hides that increment from `rate` and `increase`."""
        for event in self._registered["event"]:
            self._counters[_EVENTS].labels(event)
        for wanted in _BY_NAME[_STALE].labels[0].values or ():
            self._counters[_STALE].labels(wanted)
        for safety in set(self._works.values()):
            for code in _WAITS_WITH:
                self._counters[_SUSPENDED].labels(safety, code)
                self._counters[_MOVED].labels(safety, code)

    def _closed(self, metric: Metric, values: Iterable[str]) -> list[str]:
        """The values, with `other` for each that does not belong to its label."""
        return [
            value if value in self._values_of(label.name, label.values) else OTHER
            for label, value in zip(metric.labels, values, strict=True)
        ]

    def _values_of(self, name: str, values: tuple[str, ...] | None) -> Iterable[str]:
        return self._registered[name] if values is None else values

    def _add(self, name: str, *values: str) -> None:
        self._counters[name].labels(*self._closed(_BY_NAME[name], values)).inc()

    # --- families

    def _measured(self) -> Iterator[Family]:
        for name, distributions in self._distributions.items():
            metric = _BY_NAME[name]
            labels = [label.name for label in metric.labels]
            family = HistogramMetricFamily(name, metric.meaning, labels=labels)
            for values, distribution in dict(distributions).items():
                buckets = [(_bound(bound), count) for bound, count in distribution.buckets()]
                family.add_metric(values, buckets, distribution.total)
            yield family

    def _read(self, readings: Iterable[Reading]) -> Iterator[Family]:
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for name, value, labels in readings:
            metric = _BY_NAME[name]
            family = families.setdefault(name, _family(metric))
            family.add_metric(self._closed(metric, labels), value)
        yield from families.values()

    # --- events

    def _count_failure(self, event: AttemptFailed) -> None:
        self._add(_FAILED, event.kind, event.code)

    def _count_stale(self, event: StaleAttempt) -> None:
        self._add(_STALE, event.wanted)

    def _count_work(self, event: WorkAttemptEnded) -> None:
        safety, code = self._safety(event.contract), event.code or NONE
        self._add(_WORK, safety, event.event, event.outcome, code)

    def _count_suspension(self, event: WorkSuspended) -> None:
        self._count_work(event)
        self._add(_SUSPENDED, self._safety(event.contract), event.code or NONE)

    def _count_refusal(self, event: WorkAttemptRefused) -> None:
        self._add(_REFUSED, self._safety(event.contract), event.code or NONE)

    def _count_move(self, event: WorkMoved) -> None:
        self._add(_MOVED, self._safety(event.contract), event.code or NONE)

    def _safety(self, contract: str) -> str:
        return self._works.get(contract, OTHER)


class _Families(Collector):
    """Asks several sources at each scrape."""

    def __init__(self, *sources: Callable[[], Iterator[Family]]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Family]:
        for source in self._sources:
            yield from source()


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    make = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    return make(metric.name, metric.meaning, labels=[label.name for label in metric.labels])


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else str(float(bound))
