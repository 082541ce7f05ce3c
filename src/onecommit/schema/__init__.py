"""The schema manager: status, script, apply, epochs, the fence, lanes."""

from onecommit.schema.apply import apply
from onecommit.schema.bundle import Bundle, packaged_bundle, read_bundle
from onecommit.schema.epochs import (
    EpochReport,
    checked_who,
    ensure_epoch,
    initialize_epoch,
    rotate_epoch,
)
from onecommit.schema.fence import FenceReport, fence_writers
from onecommit.schema.grants import grants
from onecommit.schema.lanes import add_lanes
from onecommit.schema.lock import Patience
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.provision import Profile, provision
from onecommit.schema.report import SchemaReport, SchemaState
from onecommit.schema.script import script
from onecommit.schema.status import status

__all__ = [
    "DEFAULT_SCHEMA",
    "Bundle",
    "EpochReport",
    "FenceReport",
    "Patience",
    "Profile",
    "SchemaReport",
    "SchemaState",
    "add_lanes",
    "apply",
    "checked_schema_name",
    "checked_who",
    "ensure_epoch",
    "fence_writers",
    "grants",
    "initialize_epoch",
    "packaged_bundle",
    "provision",
    "read_bundle",
    "rotate_epoch",
    "script",
    "status",
]
