"""What a store says about itself, and what its ring does."""

from dataclasses import dataclass
from uuid import UUID

from onecommit.domain.identity import Epoch

SCHEMA_VERSION = 7
"""The schema version whose functions this package calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """Identity and versions of a store."""

    store_id: UUID
    schema_version: int
    active_epoch: Epoch | None
    reader_min: int
    writer_min: int
    """A package that knows only older schema versions is refused."""
    single_role: bool
    """Whoever asked has the rights of the schema's owner."""
