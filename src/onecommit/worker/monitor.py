"""Lets others see how a worker fares: its metrics, /livez and /readyz."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from onecommit.app.registration import Registry
from onecommit.domain.attempt import Attempt
from onecommit.errors import UsageError
from onecommit.telemetry.events import Event
from onecommit.telemetry.metrics import Reading
from onecommit.worker.health import Ailment, Health
from onecommit.worker.jobs.kind import Kind
from onecommit.worker.machinery import Machinery
from onecommit.worker.probe_server import Answer, ProbeServer
from onecommit.worker.readings import readings_of
from onecommit.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from onecommit.telemetry.prometheus import PrometheusExporter


class Monitor:
    """Only there if a port was asked for: without it no part of the worker measures anything for it.

    Raises:
        UsageError: prometheus-client is not installed, or the port cannot be used.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        port: int,
        registry: Registry,
        health: Health,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._settings = settings
        self._health = health
        self._exporter = _exporter(settings, registry, self._read)
        self._server = ProbeServer(
            settings.metrics_host,
            port,
            answers={
                "/metrics": self._metrics,
                "/livez": lambda _: _verdict(health.alive()),
                "/readyz": lambda _: _verdict(health.ready()),
            },
            on_error=on_error,
        )
        self._server.start()

    @property
    def port(self) -> int:
        """Where it answers."""
        return self._server.port

    def count(self, event: Event) -> None:
        """Count an event; callable from any thread."""
        self._exporter.count(event)

    def measure(self, kinds: Mapping[str, Kind]) -> None:
        """Measure how long the handlers of these kinds run, from now on."""
        for kind in kinds.values():
            observe = self._exporter.observer("onecommit_handler_seconds", kind.name)
            kind.call = _measured(kind.call, observe)

    def attach(self, parts: Machinery) -> None:
        """Let the parts tell what they measure themselves."""
        sizes = self._exporter.observer("onecommit_completer_batch_attempts")
        seconds = self._exporter.observer("onecommit_completer_batch_seconds")

        def recorded(attempts: int, took: float) -> None:
            sizes(attempts)
            seconds(took)

        parts.completer.on_recorded = recorded
        for queue, dispatcher in parts.dispatchers.items():
            observe = self._exporter.observer("onecommit_pickup_seconds", queue)
            dispatcher.on_claimed = partial(_observe_pickup, observe)

    async def stop(self) -> None:
        """Answer no more."""
        await asyncio.to_thread(self._server.stop)

    def _metrics(self, accept: str) -> Answer:
        content_type, text = self._exporter.expose(accept)
        return Answer(content_type, text)

    def _read(self) -> Iterator[Reading]:
        yield Reading("onecommit_ready", not self._health.ready())
        if self._health.parts is not None:
            yield from readings_of(self._health.parts, self._settings)


def check_metrics(settings_host: str, ports: Iterable[int]) -> None:
    """Raise what a worker would that serves its metrics at one of these ports.

    Raises:
        UsageError: prometheus-client is not installed, or a port cannot be used.
    """
    _load_exporter()
    for port in ports:
        ProbeServer(settings_host, port, answers={}, on_error=lambda _: None).stop()


def _load_exporter() -> "type[PrometheusExporter]":
    try:
        from onecommit.telemetry.prometheus import PrometheusExporter
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise UsageError(
            "metrics need prometheus-client, which is not installed",
            remedy="Install the extra: pip install 'onecommit[metrics]'.",
        ) from error
    return PrometheusExporter


def _exporter(
    settings: WorkerSettings, registry: Registry, read: Callable[[], Iterable[Reading]]
) -> "PrometheusExporter":
    return _load_exporter()(
        queues=settings.queues,
        kinds=[definition.kind for definition in registry],
        works={work.label: work.contract.safety for work in registry.work},
        contracts=settings.work,
        read=read,
    )


def _measured(
    call: Callable[..., Awaitable[Any]], observe: Callable[[float], None]
) -> Callable[..., Any]:
    async def run(context: Any, /, **arguments: Any) -> Any:
        began = perf_counter()
        try:
            return await call(context, **arguments)
        finally:
            observe(perf_counter() - began)

    return run


def _observe_pickup(observe: Callable[[float], None], attempts: Sequence[Attempt]) -> None:
    for attempt in attempts:
        if attempt.attempt == 1:
            observe(max(attempt.pickup_us, 0) / 1_000_000)


def _verdict(ailments: list[Ailment]) -> Answer:
    status = HTTPStatus.SERVICE_UNAVAILABLE if ailments else HTTPStatus.OK
    body = msgspec.json.encode({"status": status.phrase, "reasons": ailments})
    return Answer("application/json", body + b"\n", status)
