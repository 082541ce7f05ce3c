"""The life of a worker incarnation."""

from collections.abc import Sequence

import msgspec

from onecommit.calls.call import Call, Routine, Rows, read_nothing, read_scalar
from onecommit.calls.literals import json_text
from onecommit.domain.closing import Cancellation
from onecommit.domain.connections import ConnectionBudget
from onecommit.domain.identity import WorkerId
from onecommit.domain.worker import WorkerInfo

_CANCELLATIONS = ("cancel_job_ids", "cancel_run_leases")
_OF_A_WORKER = {"p_worker": "bigint", "p_epoch": "bigint"}

REGISTER_WORKER = Routine(
    "register_worker",
    {"p_name": "text", "p_info": "jsonb", "p_epoch": "bigint"},
    ("register_worker",),
)
HEARTBEAT_WORKER = Routine(
    "heartbeat_worker",
    {"p_worker": "bigint", "p_oldest_request": "bigint", "p_epoch": "bigint"},
    _CANCELLATIONS,
)
CANCELLATIONS = Routine("cancellations", {"p_epoch": "bigint"}, _CANCELLATIONS)
RETIRE_WORKER = Routine("retire_worker", _OF_A_WORKER, ("retire_worker",))
CONNECTION_BUDGET = Routine("connection_budget", {}, ("usable", "free"))
LEAD = Routine("lead", {"p_worker": "bigint", "p_ttl_us": "bigint", "p_epoch": "bigint"}, ("lead",))


def register_worker(name: str, info: WorkerInfo, *, epoch: int) -> Call[WorkerId]:
    """Begin an incarnation; everything that it claims is claimed under the number returned."""
    return Call(
        REGISTER_WORKER, (name, json_text(msgspec.to_builtins(info)), str(epoch)), read_scalar
    )


def heartbeat_worker(
    worker: WorkerId, *, oldest_request: int, epoch: int
) -> Call[list[Cancellation]]:
    """Stay alive; returns the cancellations of the last minutes, of all workers.

    `oldest_request` is the lowest claim request whose outcome this worker does not know yet.
    """
    arguments = (str(worker), str(oldest_request), str(epoch))
    return Call(HEARTBEAT_WORKER, arguments, _read_cancellations)


def cancellations(*, epoch: int) -> Call[list[Cancellation]]:
    """The cancellations of the last minutes; asked when a notice announces one."""
    return Call(CANCELLATIONS, (str(epoch),), _read_cancellations)


def retire_worker(worker: WorkerId, *, epoch: int) -> Call[None]:
    """End the incarnation after its drain; what it still holds is rescued at once."""
    return Call(RETIRE_WORKER, (str(worker), str(epoch)), read_nothing)


def lead(worker: WorkerId, *, ttl_us: int, epoch: int) -> Call[bool]:
    """Take or renew the maintenance lease; true if this worker holds it now."""
    return Call(LEAD, (str(worker), str(ttl_us), str(epoch)), read_scalar)


def connection_budget() -> Call[ConnectionBudget]:
    """How many connections this login may have, and how many more it gets now."""
    return Call(CONNECTION_BUDGET, (), _read_budget)


def _read_budget(rows: Rows) -> ConnectionBudget:
    [(usable, free)] = rows
    return ConnectionBudget(usable=usable, free=free)


def _read_cancellations(rows: Rows) -> list[Cancellation]:
    found: list[Cancellation] = []
    for job_ids, run_leases in rows:
        pairs: Sequence[tuple[int, int]] = list(zip(job_ids or (), run_leases or (), strict=True))
        found += [Cancellation(job_id, run_lease) for job_id, run_lease in pairs]
    return found
