"""Every exception that Onecommit raises on purpose.

OnecommitError
├── StoreUnavailable            ASDUR103  the server did not answer, or the connection was lost
├── StoreMismatch               ASDUR115  this database is another store
└── SchemaError                 OC010     the schema is not what this version needs
    ├── SchemaMissing                     nothing is installed
    ├── SchemaUpgradeRequired             it is older
    ├── SchemaTooNew                      it is newer
    ├── SchemaInconsistent                it is not what its history says
    └── SchemaBusy                        its lock is held by others for too long
"""

from collections.abc import Sequence
from typing import ClassVar


class OnecommitError(Exception):
    """Something failed that has a code and a remedy."""

    code: ClassVar[str] = "OC000"
    remedy: str = ""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy

    @property
    def message(self) -> str:
        """What happened, without code and remedy."""
        return str(self.args[0])

    def __str__(self) -> str:
        what = f"{self.code}: {self.message}"
        return f"{what}. {self.remedy}" if self.remedy else what


class StoreUnavailable(OnecommitError):
    """The server did not answer in time, refused the connection, or the connection was lost."""

    code = "ASDUR103"
    remedy = (
        "Check that the server runs and that the connection settings are right, then try again."
    )


class StoreMismatch(OnecommitError):
    """The database holds another store than the one that the deployment names."""

    code = "ASDUR115"
    remedy = "Compare ONECOMMIT_STORE_ID with what `onecommit status` prints for this database."


class SchemaError(OnecommitError):
    """The schema is not what this version of the package needs."""

    code = "OC010"


class SchemaMissing(SchemaError):
    """Nothing is installed under this schema name."""

    remedy = "Run `onecommit migrate`."


class SchemaUpgradeRequired(SchemaError):
    """The installed schema is older than this version of the package."""

    remedy = "Run `onecommit migrate`."


class SchemaTooNew(SchemaError):
    """The installed schema is newer than this version of the package."""

    remedy = "Upgrade the onecommit package."


class SchemaInconsistent(SchemaError):
    """The installed schema is not what its own history says; nothing was changed."""

    remedy = "Find out who changed it, or restore it; `onecommit status` names the difference."


class SchemaBusy(SchemaError):
    """Other sessions held the schema's locks for longer than the wait allowed."""

    remedy = "End those sessions or wait for them, then run the command again."

    def __init__(
        self, message: str, *, blocking_pids: Sequence[int] = (), remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.blocking_pids = tuple(blocking_pids)
