"""Every exception that Onecommit raises on purpose.

OnecommitError
├── InvalidArgument             22023     an argument is refused, named by its field
│   └── InvalidWork             ASDUR100  the same of Work
├── UsageError                  OC000     the call cannot work as written
│   ├── TransactionRequired     ASDUR101  the connection has no transaction open
│   └── CapabilityMissing       42501     the login lacks a capability of the store
├── TransactionDeadlocked       40P01     it and another one waited for each other
├── ForgeryRefused              OC000     a token or receipt was made by hand
├── StaleAttempt                OC001     this attempt is closed, or the token is foreign
├── SavepointRefused            OC002     finalization inside a savepoint
├── FeatureDisabled             OC003     caller-owned completion is not enabled for the queue
├── EpochFenced                 OC004     the store moved on to another runtime epoch
│   └── WorkEpochFenced         ASDUR108  the same, met by Work
├── TransactionTooOld           OC005     the transaction began before the claim, or long ago
├── IsolationRefused            OC006     a claim outside READ COMMITTED
├── LanesExhausted              OC007     no lane is left for a new queue or priority
├── WorkerEnded                 OC008     this worker was declared dead
├── StateRefused                OC009     the queue or job is in another state
├── CallbackTimedOut            OC011     nobody resolved the callback in time
├── StoreDamaged                OC012     a row that must exist does not
├── StoreUnavailable            ASDUR103  the server did not answer, or the connection was lost
├── StoreMismatch               ASDUR115  this database is another store
├── WorkError                             a code of the Work protocol
│   ├── CommandConflict         ASDUR102  the identities stand for another request
│   ├── ClaimLost               ASDUR104  another worker was quicker
│   ├── LeaseLost               ASDUR105  the attempt no longer holds the lease
│   ├── AmbiguousOutcome        ASDUR106  the provider may have done it
│   │   └── WorkExitCompatibilityError    an executor returned what its form cannot say
│   ├── ScopeDisabled           ASDUR107  the scope is a tombstone
│   ├── ContractUnavailable     ASDUR109  no code for this contract
│   ├── WorkTerminal            ASDUR110  the Work has ended
│   ├── WorkNotFound            ASDUR111  there is no such Work
│   ├── RevisionConflict        ASDUR112  the Work moved on since it was read
│   ├── ScopeNotFound           ASDUR113  there is no such scope
│   ├── ScopeGenerationChanged  ASDUR114  the scope is of another generation
│   ├── WorkRejected            ASDUR116  state or safety do not allow it
│   │   └── OperatorNotAuthorized         the host refused the operator
│   ├── ProofRequired           ASDUR117  evidence is missing
│   ├── CommandInProgress       ASDUR118  another process holds the command
│   ├── WorkRegistryRefused     ASDUR119  the registration does not allow it
│   ├── PlanExhausted           ASDUR120  the policy admits no further attempt
│   ├── DeadlineReached         ASDUR121  the deadline has passed
│   ├── HeartbeatStale          ASDUR404  the worker was silent for too long
│   ├── WorkerIdentityLost      ASDUR405  the incarnation was declared dead
│   └── ListenerUnavailable     ASDUR406  notices do not arrive
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

    remedy = "Run `onecommit migrate --init`."


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


class CapabilityMissing(UsageError):
    """The login lacks the capability that the operation needs; nothing was changed."""

    code = "42501"

    def __init__(
        self, message: str, *, needs: tuple[tuple[str, ...], ...] = (), remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.needs = needs
        """Alternatives, each with all that it takes."""


class TransactionDeadlocked(OnecommitError):
    """The transaction and another one waited for each other, and PostgreSQL ended this one; nothing of it was written."""

    code = "40P01"
    remedy = (
        "Roll it back and do all of it again; let the error end a handler, and its job is retried."
        " A transaction that ends several jobs ends them in the order of their ids."
    )


class ForgeryRefused(OnecommitError, TypeError):
    """A finalization token or receipt was made by hand; a job whose handler does that is not retried."""

    remedy = "Use what `ctx.token` and `ctx.complete_in_tx(...)` give."


class WorkError(OnecommitError):
    """The Work protocol refused an operation, or found what its code says; the transaction is usable."""


class CallbackTimedOut(OnecommitError):
    """Nobody resolved the callback before its timeout."""

    code = "OC011"
    remedy = "Catch it if the job can go on without an answer; else it is an error like any other."


class DiscardError(Exception):
    """Raised by a handler whose job must not be tried again; the job goes to the dead letters."""


# --- generated from sql/errors.csv and sql/work_codes.csv by tools/generate_errors.py ---


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
    remedy = "Upgrade every worker of the queue or allow it again; `onecommit status` says who lacks caller_owned_v1 and which queues an operator has disabled."


class EpochFenced(OnecommitError):
    """The store has fenced this process: its runtime epoch is not the active one or its package is older than the store accepts."""

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
    """A row or table that must exist does not or is another: the store was changed by hand or restored in part."""

    code = "OC012"
    remedy = "Run onecommit doctor and put back what it names; for a lost row restore the store from a backup and rotate the epoch."


class InvalidWork(InvalidArgument):
    """An argument or a definition of Work is refused; nothing was written."""

    code = "ASDUR100"
    remedy = "Correct the field that the message names."


class TransactionRequired(UsageError):
    """The connection has no transaction open."""

    code = "ASDUR101"
    remedy = "Open one around your writes and this call."


class CommandConflict(WorkError):
    """The command id or idempotency key stands for another request; nothing was changed."""

    code = "ASDUR102"
    remedy = "Repeat the original request or use new identities for a new one."


class ClaimLost(WorkError):
    """Another worker claimed the Work or it is no longer due."""

    code = "ASDUR104"
    remedy = "Nothing: discovery finds what is due."


class LeaseLost(WorkError):
    """The attempt no longer holds the Work's lease."""

    code = "ASDUR105"
    remedy = (
        "Stop: a later attempt or an operator decides; what was observed is kept beside the Work."
    )


class AmbiguousOutcome(WorkError):
    """The provider may have done it and nobody knows."""

    code = "ASDUR106"
    remedy = "Reconcile or resolve the Work with evidence from the provider."


class ScopeDisabled(WorkError):
    """The scope is disabled for ever."""

    code = "ASDUR107"
    remedy = "Use another scope for new Work; evidence about old effects can still be recorded."


class WorkEpochFenced(EpochFenced):
    """The runtime epoch passed is not the active one."""

    code = "ASDUR108"
    remedy = (
        "Stop this process; start it again with the ONECOMMIT_EPOCH that the operator announced."
    )


class ContractUnavailable(WorkError):
    """The worker that claimed the Work cannot decode or run its contract; no effect was permitted."""

    code = "ASDUR109"
    remedy = "Deploy a worker that registers this name and version; then release the Work with retry-safe."


class WorkTerminal(WorkError):
    """The Work has ended and does not change any more."""

    code = "ASDUR110"
    remedy = "Read its terminal fact."


class WorkNotFound(WorkError):
    """The scope holds no such Work."""

    code = "ASDUR111"
    remedy = "Check the scope and the id."


class RevisionConflict(WorkError):
    """The Work moved on since it was read; the proof was discarded."""

    code = "ASDUR112"
    remedy = "Read it and decide again."


class ScopeNotFound(WorkError):
    """The scope does not exist."""

    code = "ASDUR113"
    remedy = "Check its name: the first acceptance creates a scope."


class ScopeGenerationChanged(WorkError):
    """The scope is of another generation than the lease."""

    code = "ASDUR114"
    remedy = "Stop: the lease ended with the generation."


class WorkRejected(WorkError):
    """The Work's state or safety does not allow the operation."""

    code = "ASDUR116"
    remedy = "Read the state and choose the operation that it allows."


class ProofRequired(WorkError):
    """The operation needs evidence that was not given."""

    code = "ASDUR117"
    remedy = "Give the encoded result or the proof that the message names."


class CommandInProgress(WorkError):
    """The command was started by another process that still holds it."""

    code = "ASDUR118"
    remedy = "Repeat the exact command after its lease has ended."


class WorkRegistryRefused(WorkError):
    """The registration of a contract does not allow this."""

    code = "ASDUR119"
    remedy = "Register the contract as the message says; deploy workers that know it."


class PlanExhausted(WorkError):
    """The execution policy admits no further attempt."""

    code = "ASDUR120"
    remedy = "Read whether an effect is unknown; accept new Work with new identities if it is not."


class DeadlineReached(WorkError):
    """The Work's absolute deadline has passed."""

    code = "ASDUR121"
    remedy = (
        "Read whether an effect is unknown; accept new Work with a later deadline if it is not."
    )


class HeartbeatStale(WorkError):
    """The worker's heartbeat is older than its leases allow."""

    code = "ASDUR404"
    remedy = "Check the worker and its connection; its leases end by themselves."


class WorkerIdentityLost(WorkError):
    """The worker incarnation is unknown or was declared dead."""

    code = "ASDUR405"
    remedy = "Register a new incarnation; what the old one held is recovered."


class ListenerUnavailable(WorkError):
    """The listening connection was lost; Work is found by polling meanwhile."""

    code = "ASDUR406"
    remedy = "Nothing if it returns; else check that the connection is no transaction pooler."


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

_BY_WORK_CODE: dict[str, type[OnecommitError]] = {
    "ASDUR100": InvalidWork,
    "ASDUR101": TransactionRequired,
    "ASDUR102": CommandConflict,
    "ASDUR103": StoreUnavailable,
    "ASDUR104": ClaimLost,
    "ASDUR105": LeaseLost,
    "ASDUR106": AmbiguousOutcome,
    "ASDUR107": ScopeDisabled,
    "ASDUR108": WorkEpochFenced,
    "ASDUR109": ContractUnavailable,
    "ASDUR110": WorkTerminal,
    "ASDUR111": WorkNotFound,
    "ASDUR112": RevisionConflict,
    "ASDUR113": ScopeNotFound,
    "ASDUR114": ScopeGenerationChanged,
    "ASDUR115": StoreMismatch,
    "ASDUR116": WorkRejected,
    "ASDUR117": ProofRequired,
    "ASDUR118": CommandInProgress,
    "ASDUR119": WorkRegistryRefused,
    "ASDUR120": PlanExhausted,
    "ASDUR121": DeadlineReached,
    "ASDUR400": SchemaMissing,
    "ASDUR401": SchemaUpgradeRequired,
    "ASDUR402": SchemaTooNew,
    "ASDUR403": SchemaInconsistent,
    "ASDUR404": HeartbeatStale,
    "ASDUR405": WorkerIdentityLost,
    "ASDUR406": ListenerUnavailable,
}
# --- end of the generated block ---


class WorkExitCompatibilityError(AmbiguousOutcome):
    """An executor returned a typed exit that its registration cannot carry; the effect stays unknown."""

    remedy = "Register the executor with `exit_executor` under a new version of the contract."


class OperatorNotAuthorized(WorkRejected):
    """The function that the application registered with `@app.authorize` refused the operator."""

    remedy = "Ask somebody who may, or change what the function allows."


def work_codes() -> tuple[str, ...]:
    """Every code of the Work protocol."""
    return tuple(_BY_WORK_CODE)


def from_work_code(code: str, message: str, *, remedy: str | None = None) -> OnecommitError:
    """The error for a code that an operation of the Work protocol returned. `remedy`: another than the code's."""
    return _BY_WORK_CODE.get(code, WorkError)(message, remedy=remedy)


def from_sqlstate(
    sqlstate: str | None, message: str, *, hint: str | None = None
) -> OnecommitError | None:
    """The error for what a Onecommit function raised; None if the error is the database's own."""
    if sqlstate == InvalidArgument.code:
        # The functions write "field: what is wrong with it", never the value.
        return InvalidArgument(message, field=message.partition(":")[0], remedy=hint)
    error = _BY_SQLSTATE.get(sqlstate or "")
    return None if error is None else error(message, remedy=hint)
