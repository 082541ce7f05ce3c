"""The store knows itself: an identity, this package's version, an active epoch."""

from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import Check, Finding


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    store = catalog.store
    if store is None:
        return
    if store.store_id is None:
        yield Finding(
            subject="store_metadata",
            problem="holds no StoreId",
            remedy="Restore the store from a backup, or `onecommit migrate` a new one.",
        )
    if store.version != expected.version:
        yield Finding(
            subject="schema_migration",
            problem=f"is at version {store.version}, this package at {expected.version}",
            remedy="Run `onecommit migrate`, or the doctor of the release that is installed.",
        )
    if store.active_epoch is None:
        yield Finding(
            subject="epoch_fence",
            problem="no runtime epoch is active, so nothing can run",
            remedy="Run `onecommit epoch init`.",
        )


CHECK = Check(name="store", looks_at="StoreId, schema version and active epoch", findings=_findings)
