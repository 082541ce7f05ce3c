"""The store itself."""

from onecommit.calls.call import Call, Routine, Rows
from onecommit.domain.store import StoreStatus

_STATUS_COLUMNS = (
    "store_id",
    "schema_version",
    "active_epoch",
    "reader_min",
    "writer_min",
    "single_role",
)

STORE_STATUS = Routine("store_status", {}, _STATUS_COLUMNS)


def store_status() -> Call[StoreStatus]:
    """Identity and versions; the epoch is None until an operator initialises it."""
    return Call(STORE_STATUS, (), _read_status)


def _read_status(rows: Rows) -> StoreStatus:
    return StoreStatus(**dict(zip(_STATUS_COLUMNS, rows[0], strict=True)))
