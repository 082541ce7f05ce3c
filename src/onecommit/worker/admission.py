"""What a worker looks at before it claims: its connections, and who else serves its queues."""

from collections.abc import Mapping

from onecommit.calls.views import finalization_status
from onecommit.calls.workers import connection_budget
from onecommit.domain.connections import ConnectionBudget, ConnectionNeeds, Supply, admit
from onecommit.store.async_store import AsyncStore
from onecommit.telemetry.events import CallerOwnedDisabled, ConnectionsScarce, Emit
from onecommit.worker.settings import WorkerSettings

STORE_CONNECTIONS = 6
"""Beside one for the claims of each queue: completer, progress, maintenance, reconcilers."""
_WORK_CONNECTIONS = 4
"""For Work, if any is run: its looks and claims, permits and records; never one for a provider's answer."""
_OWN_CONNECTIONS = 2
"""The heartbeat's and the listener's."""


def store_connections(settings: WorkerSettings) -> int:
    """How many connections the store of the runtime may open."""
    return len(settings.queues) + STORE_CONNECTIONS + (_WORK_CONNECTIONS if settings.work else 0)


def needs_of(settings: WorkerSettings, caller_owned: Mapping[str, int]) -> ConnectionNeeds:
    """What this process may use; `caller_owned`: concurrency of the queues with such jobs."""
    return ConnectionNeeds(
        runtime=store_connections(settings) + _OWN_CONNECTIONS,
        caller_owned=sum(caller_owned.values()),
        application=settings.application_connections,
        shared_pool=settings.shared_pool,
    )


async def check_connections(store: AsyncStore, needs: ConnectionNeeds, *, emit: Emit) -> None:
    """Refuse to start, or warn, if the server cannot give what this process may use.

    Raises:
        UsageError: It never can, or handlers could take what the runtime needs.
    """
    budget: ConnectionBudget | None = None
    if not store.settings.transaction_pooler or needs.shared_pool is not None:
        budget = await store.run(connection_budget())
    if admit(needs, budget) is Supply.SCARCE and budget is not None:
        emit(ConnectionsScarce(needed=needs.most, free=budget.free, usable=budget.usable))


async def report_disabled(store: AsyncStore, queues: Mapping[str, int], *, emit: Emit) -> None:
    """Warn of queues whose caller-owned jobs cannot complete yet, with who stands in the way."""
    if not queues:
        return
    for status in await store.run(finalization_status()):
        if status.queue in queues and not status.enabled:
            names = ", ".join(status.waiting_for)
            emit(
                CallerOwnedDisabled(
                    queue=status.queue, waiting_for=names, by_operator=status.disabled
                )
            )
