"""Every exception that Onecommit raises on purpose.

OnecommitError
├── InvalidArgument             22023     an argument is refused, named by its field
├── UsageError                  OC000     the call cannot work as written
├── ForgeryRefused              OC000     a token or receipt was made by hand
├── StaleAttempt                OC001     this attempt is closed, or the token is foreign
├── SavepointRefused            OC002     finalization inside a savepoint
├── FeatureDisabled             OC003     caller-owned completion is not enabled for the queue
├── EpochFenced                 OC004     the store moved on to another runtime epoch
├── TransactionTooOld           OC005     the transaction began before the claim, or long ago
├── IsolationRefused            OC006     a claim outside READ COMMITTED
├── LanesExhausted              OC007     no lane is left for a new queue or priority
├── WorkerEnded                 OC008     this worker was declared dead
├── StateRefused                OC009     the queue or job is in another state
├── CallbackTimedOut            OC011     nobody resolved the callback in time
├── StoreDamaged                OC012     a row that must exist does not
├── StoreUnavailable            ASDUR103  the server did not answer, or the connection was lost
├── StoreMismatch               ASDUR115  this database is another store
└── SchemaError                 OC010     the schema is not what this version needs
    ├── SchemaMissing                     nothing is installed
    ├── SchemaUpgradeRequired             it is older
    ├── SchemaTooNew                      it is newer
    ├── SchemaInconsistent                it is not what its history says
    └── SchemaBusy                        its lock is held by others for too long

The embedded server adds EmbeddedPostgresError (OC100) and its kinds. DiscardError stands beside the tree: a handler raises it.
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


class InvalidArgument(OnecommitError, ValueError):
    """An argument is refused; nothing was written. The message never holds the value."""

    code = "22023"

    def __init__(
        self, message: str, *, field: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.field = field


class UsageError(OnecommitError):
    """The call cannot work as it is written."""


class ForgeryRefused(OnecommitError, TypeError):
    """A finalization token or receipt was made by hand; a job whose handler does that is not retried."""

    remedy = "Use what `ctx.token` and `ctx.complete_in_tx(...)` give."


class CallbackTimedOut(OnecommitError):
    """Nobody resolved the callback before its timeout."""

    code = "OC011"
    remedy = "Catch it if the job can go on without an answer; else it is an error like any other."


class DiscardError(Exception):
    """Raised by a handler whose job must not be tried again; the job goes to the dead letters."""


# --- generated from sql/errors.csv by tools/generate_errors.py: edit that file ---


class StaleAttempt(OnecommitError):
    """The token does not name an open attempt: another outcome was recorded or the token is foreign."""

    code = "OC001"
    remedy = "Roll the transaction back and return; the job's current attempt decides."


class SavepointRefused(OnecommitError):
    """The finalization ran inside a savepoint."""

    code = "OC002"
    remedy = "Call it at the top level of the transaction: outside begin_nested() and nested atomic() and nested conn.transaction() blocks."


class FeatureDisabled(OnecommitError):
    """Caller-owned completion is not enabled for the queue or this worker lacks it and the queue has it."""

    code = "OC003"
    remedy = "Upgrade every worker of the queue; `onecommit status` names those that lack caller_owned_v1."


class EpochFenced(OnecommitError):
    """The runtime epoch passed is not the active one."""

    code = "OC004"
    remedy = (
        "Stop this process; start it again with the ONECOMMIT_EPOCH that the operator announced."
    )


class TransactionTooOld(OnecommitError):
    """The transaction began before the claim or is older than the store allows."""

    code = "OC005"
    remedy = "Open the transaction only for the final writes and complete in it."


class IsolationRefused(OnecommitError):
    """The operation needs READ COMMITTED."""

    code = "OC006"
    remedy = "Run it in a READ COMMITTED transaction of its own."


class LanesExhausted(OnecommitError):
    """No free lane is left for a new queue or priority."""

    code = "OC007"
    remedy = "Run onecommit lanes add."


class WorkerEnded(OnecommitError):
    """The worker incarnation is unknown or was declared dead."""

    code = "OC008"
    remedy = "Register a new incarnation; its open attempts were or will be rescued."


class StateRefused(OnecommitError):
    """The queue or job is not in a state that allows this."""

    code = "OC009"
    remedy = "Read its state and decide again."


class StoreDamaged(OnecommitError):
    """A row that must exist does not: the store was changed by hand or restored in part."""

    code = "OC012"
    remedy = "Restore the store from a backup and rotate the epoch."


_BY_SQLSTATE: dict[str, type[OnecommitError]] = {
    "OC001": StaleAttempt,
    "OC002": SavepointRefused,
    "OC003": FeatureDisabled,
    "OC004": EpochFenced,
    "OC005": TransactionTooOld,
    "OC006": IsolationRefused,
    "OC007": LanesExhausted,
    "OC008": WorkerEnded,
    "OC009": StateRefused,
    "OC012": StoreDamaged,
}
# --- end of the generated block ---


def from_sqlstate(
    sqlstate: str | None, message: str, *, hint: str | None = None
) -> OnecommitError | None:
    """The error for what a Onecommit function raised; None if the error is the database's own."""
    if sqlstate == InvalidArgument.code:
        # The functions write "field: what is wrong with it", never the value.
        return InvalidArgument(message, field=message.partition(":")[0], remedy=hint)
    error = _BY_SQLSTATE.get(sqlstate or "")
    return None if error is None else error(message, remedy=hint)
