"""The store itself."""

from uuid import UUID

from onecommit.calls.call import Call, Routine, Rows, read_scalar
from onecommit.domain.store import StoreStatus

_STATUS_COLUMNS = ("store_id", "schema_version", "active_epoch", "reader_min", "writer_min")

STORE_STATUS = Routine("store_status", {}, _STATUS_COLUMNS)
INITIALIZE_EPOCH = Routine(
    "initialize_epoch",
    {"p_store_id": "uuid", "p_candidate": "bigint", "p_actor": "text", "p_reason": "text"},
    ("initialize_epoch",),
)
ROTATE_EPOCH = Routine(
    "rotate_epoch",
    {
        "p_store_id": "uuid",
        "p_expected": "bigint",
        "p_candidate": "bigint",
        "p_actor": "text",
        "p_reason": "text",
    },
    ("rotate_epoch",),
)


def store_status() -> Call[StoreStatus]:
    """Identity and versions; the epoch is None until an operator initialises it."""
    return Call(STORE_STATUS, (), _read_status)


def initialize_epoch(store_id: UUID, *, candidate: int, actor: str, reason: str) -> Call[int]:
    """Activate the first epoch of a store."""
    return Call(INITIALIZE_EPOCH, (str(store_id), str(candidate), actor, reason), read_scalar)


def rotate_epoch(
    store_id: UUID, *, expected: int, candidate: int, actor: str, reason: str
) -> Call[int]:
    """Fence every process of the expected epoch and activate another."""
    arguments = (str(store_id), str(expected), str(candidate), actor, reason)
    return Call(ROTATE_EPOCH, arguments, read_scalar)


def _read_status(rows: Rows) -> StoreStatus:
    return StoreStatus(**dict(zip(_STATUS_COLUMNS, rows[0], strict=True)))
