"""What the parts of a worker have counted, in the names of the metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from onecommit.domain.follow_up import Transition
from onecommit.domain.job import Outcome
from onecommit.telemetry.metrics import ADMISSION, EVIDENCE, PERMIT, RENEWAL, Label, Reading
from onecommit.worker.machinery import Machinery
from onecommit.worker.settings import WorkerSettings
from onecommit.worker.work import WorkRuntime


def readings_of(parts: Machinery, settings: WorkerSettings) -> Iterator[Reading]:
    """Every counter and gauge of the parts; it only reads, so any thread may ask."""
    return chain(
        _of_queues(parts, settings.queues),
        _of_ends(parts),
        _of_work(parts.work, settings.work),
        _of_worker(parts),
    )


def _of_queues(parts: Machinery, slots: Mapping[str, int]) -> Iterator[Reading]:
    for queue, station in parts.stations.items():
        labels = (queue,)
        yield Reading("onecommit_attempts_claimed_total", parts.dispatchers[queue].claimed, labels)
        yield Reading("onecommit_attempts_running", station.running, labels)
        yield Reading("onecommit_attempts_waiting", station.waiting, labels)
        yield Reading("onecommit_attempts_parked", station.parked, labels)
        yield Reading("onecommit_slots", slots[queue], labels)


def _of_ends(parts: Machinery) -> Iterator[Reading]:
    # Copied, since the event loop goes on to count: a copy of a dict is one step of the interpreter.
    ended = Counter(dict(parts.completer.ended))
    ended.update(dict(parts.reconciler.ended))
    ended[Transition.RESCUED] += parts.maintenance.rescued
    for transition in Transition:
        if transition is not Transition.WAITING:
            yield Reading("onecommit_attempts_ended_total", ended[transition], (transition,))
    yield Reading("onecommit_attempts_ended_total", ended[None], (Outcome.SNOOZED,))
    yield Reading("onecommit_completer_unrecorded", parts.completer.unrecorded)
    decided = dict(parts.reconciler.decided)
    yield from _each("onecommit_reconciler_decisions_total", EVIDENCE, decided)
    yield Reading("onecommit_reconciler_unresolved", parts.reconciler.watchers)


def _of_work(work: WorkRuntime, slots: Mapping[str, int]) -> Iterator[Reading]:
    runner = work.runner
    yield from _each("onecommit_work_permits_total", PERMIT, dict(runner.permits))
    yield from _each("onecommit_work_admissions_total", ADMISSION, dict(runner.admissions))
    yield from _each("onecommit_work_renewals_total", RENEWAL, dict(runner.renewals.answers))
    for contract, concurrency in slots.items():
        running = concurrency - work.contracts.free(contract)
        yield Reading("onecommit_work_running", running, (contract,))
        yield Reading("onecommit_work_slots", concurrency, (contract,))


def _of_worker(parts: Machinery) -> Iterator[Reading]:
    yield Reading("onecommit_promoted_total", parts.maintenance.promoted)
    yield Reading("onecommit_leader", parts.maintenance.leading)
    yield Reading("onecommit_listening", parts.notifier.listening)
    yield Reading("onecommit_heartbeat_age_seconds", parts.heartbeat.age)


def _each(metric: str, label: Label, counted: Mapping[Any, int]) -> Iterator[Reading]:
    """One reading for each value of the label, those included that have not occurred."""
    for value in label.values or ():
        yield Reading(metric, counted.get(value, 0), (value,))
