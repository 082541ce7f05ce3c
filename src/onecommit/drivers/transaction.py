"""What every adapter says about the caller's transaction and its errors."""

from typing import Any

from onecommit.calls.manifest import all_capabilities, capabilities_for
from onecommit.domain.capability import lacking
from onecommit.errors import (
    CapabilityMissing,
    OnecommitError,
    SchemaInconsistent,
    SchemaMissing,
    TransactionDeadlocked,
    TransactionRequired,
    UsageError,
    from_sqlstate,
)

# Statements, where a driver's own savepoints are bound to blocks of code.
SET_SAVEPOINT = "savepoint onecommit_handoff"
RELEASE_SAVEPOINT = "release savepoint onecommit_handoff"
ROLL_BACK_TO_SAVEPOINT = "rollback to savepoint onecommit_handoff"

_COMPLAINING = ("asyncpg", "psycopg2")


def no_transaction(how_to_begin: str) -> TransactionRequired:
    """No transaction is open, so the call would commit alone."""
    return TransactionRequired(
        "the connection has no transaction open, so this call would commit by itself",
        remedy=f"Open one around your writes and this call: {how_to_begin}.",
    )


def aborted_transaction() -> UsageError:
    """The transaction failed earlier."""
    return UsageError(
        "the transaction has already failed and can only be rolled back",
        remedy="Roll it back and do its work again in a new transaction.",
    )


def read_only_transaction() -> UsageError:
    """The transaction was begun as READ ONLY."""
    return UsageError(
        "the transaction is read-only, so nothing can be written in it",
        remedy="Begin it as READ WRITE, and look for a read replica behind this connection.",
    )


def closed_connection() -> UsageError:
    """The connection is closed, perhaps by us."""
    return UsageError(
        "the connection is closed",
        remedy="Take another one and begin a new transaction; an error of complete_in_tx closes the connection.",
    )


def busy_connection() -> UsageError:
    """Two tasks or threads share the connection, so neither knows what its transaction holds."""
    return UsageError(
        "another task or thread is using the connection at this moment",
        remedy="Give each its own connection.",
    )


def in_pipeline() -> UsageError:
    """The state of the transaction is not known while statements are under way."""
    return UsageError(
        "the connection is in pipeline mode",
        remedy="Leave the pipeline() block first; the transaction may stay open around it.",
    )


def reason_behind(error: BaseException) -> BaseException:
    """What ended the transaction block, if `error` only says that its connection is closed.

    The blocks of asyncpg and psycopg2 raise InterfaceError then, over the error that they end with.
    """
    while (
        type(error).__name__ == "InterfaceError"
        and type(error).__module__.partition(".")[0] in _COMPLAINING
        and error.__context__ is not None
        and error.__cause__ is None
    ):
        error = error.__context__
    return error


def refusal_of(error: Any, *, doing: str) -> OnecommitError | None:
    """Our error for what one of our functions raised, through any driver; None for any other error."""
    sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    match sqlstate:
        case "3F000" | "42883" | "42P01":  # no such schema, function, table
            return SchemaMissing(f"{doing} is not installed under this schema name")
        case "25P02":
            return aborted_transaction()
        case "40P01":
            return TransactionDeadlocked(
                f"another transaction and this one waited for each other in {doing}"
            )
        case "25006":
            return read_only_transaction()
        case "42501":
            # What a role of the login is refused has no context; only a routine has one.
            if _said(error, "context", "context"):
                return _refused_inside(doing)
            return _lacking(doing)
        case _:
            message = _said(error, "message_primary", "message")
            hint = _said(error, "message_hint", "hint")
            return from_sqlstate(sqlstate, message or "refused", hint=hint)


def _lacking(doing: str) -> OnecommitError:
    granted = capabilities_for(doing)
    if not granted or all_capabilities() <= set(granted):
        return CapabilityMissing(
            f"the login may not use {doing}: it has no capability of this store",
            remedy="Grant it the role of what it does, such as `grant onecommit_reader to` this login;"
            " `onecommit provision --print` makes the roles.",
        )
    return lacking(tuple((each,) for each in granted), doing)


def _refused_inside(doing: str) -> SchemaInconsistent:
    return SchemaInconsistent(
        f"a privilege is missing inside {doing}, so the roles are not those of this version",
        remedy="Run the SQL of `onecommit provision --print` again; `onecommit doctor` names what differs.",
    )


def _said(error: Any, diagnostic: str, attribute: str) -> Any:
    """A part of the server's answer: in psycopg's diagnostics, else an attribute of the error."""
    described = getattr(error, "diag", None)
    return getattr(described, diagnostic, None) if described else getattr(error, attribute, None)
