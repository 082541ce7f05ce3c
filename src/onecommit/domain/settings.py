"""How a store is reached."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Self
from uuid import UUID

from onecommit.domain.arguments import BIGINT, checked_count, checked_flag, checked_text
from onecommit.domain.queue import checked_name
from onecommit.domain.times import microseconds
from onecommit.errors import InvalidArgument

LONGEST_SCHEMA_NAME = 63
LONGEST_TIMEOUT = timedelta(days=24)
"""PostgreSQL counts its timeouts in milliseconds, with 31 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where the store is, which one it is meant to be, and how patient its clients are.

    `store_id` and `epoch` bind the process to one store: without them the process adopts what it
    finds, with a warning.
    """

    dsn: str = field(default="", repr=False)
    schema: str = "onecommit"
    store_id: UUID | None = None
    epoch: int | None = None
    max_connections: int = 10
    transaction_pooler: bool = False
    """The DSN leads to pgbouncer or the like in transaction mode: no prepared statements, no LISTEN."""
    connect_timeout: timedelta = timedelta(seconds=10)
    operation_timeout: timedelta = timedelta(seconds=30)
    """A statement that takes longer is cancelled, and a server that does not answer is given up."""
    application_name: str = "onecommit"

    def __post_init__(self) -> None:
        checked_name(self.schema, field="schema")
        if len(self.schema.encode()) > LONGEST_SCHEMA_NAME:
            raise InvalidArgument("`schema` is longer than 63 bytes", field="schema")
        checked_text(self.dsn, field="dsn")
        checked_text(self.application_name, field="application_name")
        checked_count(self.max_connections, field="max_connections")
        checked_flag(self.transaction_pooler, field="transaction_pooler")
        for name in ("connect_timeout", "operation_timeout"):
            timeout = getattr(self, name)
            if not microseconds(timeout, field=name) or timeout > LONGEST_TIMEOUT:
                raise InvalidArgument(
                    f"`{name}` is not above 0 and at most {LONGEST_TIMEOUT.days} days", field=name
                )
        self._check_identity()

    def _check_identity(self) -> None:
        store_id: object = self.store_id
        if store_id is not None and not isinstance(store_id, UUID):
            raise InvalidArgument(
                "`store_id` is not a UUID", field="store_id", remedy="Write store_id=UUID('...')."
            )
        if self.epoch is not None:
            checked_count(self.epoch, field="epoch", bits=BIGINT)

    def completed(self, environment: Mapping[str, str] = os.environ) -> Self:
        """These settings, where they are silent ONECOMMIT_DSN, ONECOMMIT_STORE_ID, ONECOMMIT_EPOCH."""
        store_id = environment.get("ONECOMMIT_STORE_ID")
        epoch = environment.get("ONECOMMIT_EPOCH")
        return replace(
            self,
            dsn=self.dsn or environment.get("ONECOMMIT_DSN", ""),
            store_id=self.store_id or (_uuid(store_id) if store_id else None),
            epoch=self.epoch or (_epoch(epoch) if epoch else None),
        )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidArgument(
            "ONECOMMIT_STORE_ID is not a UUID", field="ONECOMMIT_STORE_ID"
        ) from None


def _epoch(text: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", text):
        raise InvalidArgument("ONECOMMIT_EPOCH is not a number", field="ONECOMMIT_EPOCH")
    return checked_count(int(text), field="ONECOMMIT_EPOCH", bits=BIGINT)
