"""Is this the store that the process is meant for?"""

import logging
from functools import cache
from uuid import UUID

from onecommit.domain.identity import Epoch
from onecommit.domain.settings import StoreSettings
from onecommit.domain.store import SCHEMA_VERSION, StoreStatus
from onecommit.errors import EpochFenced, SchemaTooNew, SchemaUpgradeRequired, StoreMismatch

logger = logging.getLogger("onecommit")


def checked_epoch(status: StoreStatus, settings: StoreSettings) -> Epoch:
    """The epoch to use with this store, or an error that says what does not fit."""
    _check_version(status)
    if settings.store_id is not None and settings.store_id != status.store_id:
        raise StoreMismatch("this database holds another store")
    if status.active_epoch is None:
        raise EpochFenced(
            "the store has no runtime epoch yet", remedy="Run `onecommit epoch init`."
        )
    if settings.epoch is not None and settings.epoch != status.active_epoch:
        raise EpochFenced("the runtime epoch of this process is not the active one")
    if settings.store_id is None or settings.epoch is None:
        if not status.single_role:
            raise StoreMismatch(
                "this process does not say which store and epoch it is meant for",
                remedy="Set ONECOMMIT_STORE_ID and ONECOMMIT_EPOCH as `onecommit epoch init` printed them; only a"
                " login with the rights of the schema's owner may go without.",
            )
        _warn_of_adoption(status.store_id, status.active_epoch)
    return status.active_epoch


def _check_version(status: StoreStatus) -> None:
    if status.schema_version < SCHEMA_VERSION:
        raise SchemaUpgradeRequired("the installed schema is older than this package")
    if status.schema_version > SCHEMA_VERSION and status.writer_min > SCHEMA_VERSION:
        raise SchemaTooNew("the installed schema no longer accepts this version of the package")


@cache  # once for each store
def _warn_of_adoption(store_id: UUID, epoch: Epoch) -> None:
    logger.warning(
        "adopted store %s at epoch %d as found; set ONECOMMIT_STORE_ID and ONECOMMIT_EPOCH, so that a"
        " wrong or restored database is refused",
        store_id,
        epoch,
    )
