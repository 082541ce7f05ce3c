"""What a worker counts and measures: one table, from which the exporter and the documentation are made.

Every label has a closed set of values: names that the process has registered, and words of ours. An
identifier, a scope or an application's own text never becomes one.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from onecommit.domain.evidence import Evidence
from onecommit.domain.follow_up import Transition
from onecommit.domain.job import Outcome
from onecommit.domain.work import Safety
from onecommit.domain.work_attempt import CompletionOutcome, RenewalOutcome, WorkEvent
from onecommit.errors import work_codes

OTHER = "other"
"""Instead of any value that is not in a label's set."""
NONE = "none"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SIZES = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500)


class MetricKind(StrEnum):
    """What Prometheus calls the type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Label:
    """A label and its values; None: the names that a process has registered."""

    name: str
    values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One family of the exposition."""

    name: str
    kind: MetricKind
    meaning: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()


class Reading(NamedTuple):
    """What a part of the worker counts by itself, at the moment of the question."""

    metric: str
    value: float
    labels: tuple[str, ...] = ()


QUEUE = Label("queue")
KIND = Label("kind")
CONTRACT = Label("contract")
EVENT = Label("event")
ENDED = Label(
    "outcome", (*(each for each in Transition if each is not Transition.WAITING), Outcome.SNOOZED)
)
WANTED = Label(
    "wanted",
    (
        Outcome.COMPLETED,
        Outcome.RETRIED,
        Outcome.SNOOZED,
        Outcome.FAILED,
        Outcome.DISCARDED,
        Outcome.CANCELLED,
    ),
)
FAILURE = Label(
    "code",
    (
        "handler_error",
        "timeout",
        "discarded",
        "invalid_result",
        "undecodable_arguments",
        "follow_up_error",
        "unexpected_receipt",
        "forged_receipt",
    ),
)
EVIDENCE = Label("evidence", tuple(Evidence))
SAFETY = Label("safety", tuple(Safety))
SAID = Label("said", (*WorkEvent, "contract_unavailable"))
RECORDED = Label("outcome", tuple(CompletionOutcome))
CODE = Label(
    "code",
    (
        *work_codes(),
        "runtime_epoch_mismatch",
        "admission_reply_lost",
        "worker_draining",
        "exit_compatibility",
        "lease_lost",
        "lease_ending",
        "worker_stopping",
        "deadline",
        "circuit",
        "elapsed",
        "attempts",
        NONE,
    ),
)
PERMIT = Label("outcome", ("granted", "replayed", "refused"))
ADMISSION = Label("outcome", ("admitted", "refused", "reply_lost"))
RENEWAL = Label("outcome", (*RenewalOutcome, "unanswered"))


def _counter(name: str, meaning: str, *labels: Label) -> Metric:
    return Metric(name=name, kind=MetricKind.COUNTER, meaning=meaning, labels=labels)


def _gauge(name: str, meaning: str, *labels: Label) -> Metric:
    return Metric(name=name, kind=MetricKind.GAUGE, meaning=meaning, labels=labels)


def _histogram(name: str, meaning: str, *labels: Label, buckets: tuple[float, ...]) -> Metric:
    return Metric(
        name=name, kind=MetricKind.HISTOGRAM, meaning=meaning, labels=labels, buckets=buckets
    )


JOBS = (
    _counter("onecommit_attempts_claimed_total", "attempts claimed", QUEUE),
    _counter(
        "onecommit_attempts_ended_total",
        "attempts whose end this process recorded; `snoozed` went back uncounted, `rescued` were another's",
        ENDED,
    ),
    _counter(
        "onecommit_attempts_failed_total",
        "attempts that failed, by the code that their job carries",
        KIND,
        FAILURE,
    ),
    _counter(
        "onecommit_attempts_stale_total",
        "ends that were not recorded, because another one had closed the attempt",
        WANTED,
    ),
    _histogram(
        "onecommit_handler_seconds",
        "how long handlers ran, the wait of a `def` handler for a thread included",
        KIND,
        buckets=_SECONDS,
    ),
    _histogram(
        "onecommit_pickup_seconds",
        "from the enqueueing of a job to the claim of its first attempt, by the clock of the database;"
        " a delay that was asked for is included",
        QUEUE,
        buckets=_SECONDS,
    ),
    _gauge(
        "onecommit_attempts_running",
        "handlers that have begun and wait for something, each in a slot",
        QUEUE,
    ),
    _gauge("onecommit_attempts_waiting", "attempts claimed ahead, not begun", QUEUE),
    _gauge("onecommit_attempts_parked", "handlers that wait for callbacks", QUEUE),
    _gauge("onecommit_slots", "concurrency of the queue", QUEUE),
    _histogram(
        "onecommit_completer_batch_attempts",
        "ends of attempts recorded in one statement",
        buckets=_SIZES,
    ),
    _histogram(
        "onecommit_completer_batch_seconds",
        "how long such a statement took, repetitions after a lost connection included",
        buckets=_SECONDS,
    ),
    _gauge("onecommit_completer_unrecorded", "ends that the store has not answered for yet"),
    _counter(
        "onecommit_reconciler_decisions_total",
        "caller-owned attempts decided, by the store's evidence",
        EVIDENCE,
    ),
    _gauge(
        "onecommit_reconciler_unresolved",
        "caller-owned attempts of unknown outcome that keep no slot any more",
    ),
)

WORK = (
    _counter(
        "onecommit_work_attempts_total",
        "attempts of Work that ended: what the executor said, what the store did, the code that the Work stands with",
        SAFETY,
        SAID,
        RECORDED,
        CODE,
    ),
    _counter(
        "onecommit_work_suspended_total",
        "attempts that left Work waiting for an operator",
        SAFETY,
        CODE,
    ),
    _counter(
        "onecommit_work_refused_total",
        "attempts that got no permit or no admission, so that the provider was not called",
        SAFETY,
        CODE,
    ),
    _counter(
        "onecommit_work_moved_total",
        "items that a claim found without a live lease, out of time or of another epoch, and decided",
        SAFETY,
        CODE,
    ),
    _counter("onecommit_work_permits_total", "answers to asking for a permit", PERMIT),
    _counter("onecommit_work_admissions_total", "answers to asking for an invocation", ADMISSION),
    _counter(
        "onecommit_work_renewals_total", "renewals of leases; `stale` lost the lease", RENEWAL
    ),
    _gauge("onecommit_work_running", "items claimed here and not ended", CONTRACT),
    _gauge("onecommit_work_slots", "concurrency of the contract", CONTRACT),
)

WORKER = (
    _counter("onecommit_events_total", "events of level WARNING and above", EVENT),
    _counter("onecommit_promoted_total", "jobs made ready when due, by this process as leader"),
    _gauge("onecommit_ready", "1 if /readyz would say so"),
    _gauge("onecommit_leader", "1 if this process does the store's maintenance"),
    _gauge("onecommit_listening", "1 while notices arrive"),
    _gauge("onecommit_heartbeat_age_seconds", "since the last heartbeat that the store answered"),
)

METRICS = (*JOBS, *WORK, *WORKER)
