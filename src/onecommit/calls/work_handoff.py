"""Proof, in a caller's transaction, that an admitted invocation holds."""

from collections.abc import Sequence
from uuid import UUID

from onecommit.calls.call import Call, Routine, Rows
from onecommit.domain.work import WorkFence
from onecommit.errors import from_work_code

_FENCE = {
    "p_scope_id": "text",
    "p_work_id": "bigint",
    "p_attempt": "integer",
    "p_lease_generation": "bigint",
    "p_scope_generation": "bigint",
    "p_owner": "bigint",
    "p_store_id": "uuid",
    "p_epoch": "bigint",
}
HANDOFF_LOCK = Routine("handoff_lock", _FENCE, ("code", "array_to_string(unbounded, ' ')"))
HANDOFF_CHECK = Routine("handoff_check", _FENCE, ("code",))

_REFUSALS = {
    "ASDUR105": "the attempt no longer holds the lease",
    "ASDUR107": "the scope is disabled",
    "ASDUR108": "the runtime epoch of the invocation is not the active one",
    "ASDUR110": "the Work has ended",
    "ASDUR115": "the connection leads to another store",
    "ASDUR116": "the invocation was not admitted, or the Work was asked to stop",
}


def handoff_lock(fence: WorkFence, *, store_id: UUID) -> Call[Sequence[str]]:
    """Lock what the invocation holds until the transaction ends; the time limits that it lacks.

    A refusal is raised after its row was read, so the transaction stays usable.
    """
    return Call(HANDOFF_LOCK, _arguments(fence, store_id), _read_lock)


def handoff_check(fence: WorkFence, *, store_id: UUID) -> Call[None]:
    """Find out that it still holds, in the transaction that locked it; raises as `handoff_lock` does."""
    return Call(HANDOFF_CHECK, _arguments(fence, store_id), _read_check)


def _arguments(fence: WorkFence, store_id: UUID) -> tuple[str, ...]:
    numbers = (fence.work_id, fence.attempt, fence.lease_generation, fence.scope_generation)
    return (
        fence.scope,
        *map(str, numbers),
        str(fence.owner),
        str(store_id),
        str(fence.epoch),
    )


def _read_lock(rows: Rows) -> Sequence[str]:
    code, unbounded = rows[0]
    _raise_refusal(code)
    names: str = unbounded
    return names.split()


def _read_check(rows: Rows) -> None:
    _raise_refusal(rows[0][0])


def _raise_refusal(code: str | None) -> None:
    if code is not None:
        raise from_work_code(code, _REFUSALS.get(code, "the invocation does not hold"))
