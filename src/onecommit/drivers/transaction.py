"""What every adapter says about the caller's transaction and its errors."""

from typing import Any

from onecommit.errors import OnecommitError, SchemaMissing, UsageError, from_sqlstate


def no_transaction(how_to_begin: str) -> UsageError:
    """No transaction is open, so the call would commit alone."""
    return UsageError(
        "the connection has no transaction open, so this call would commit by itself",
        remedy=f"Open one around your writes and this call: {how_to_begin}.",
    )


def aborted_transaction() -> UsageError:
    """The transaction failed earlier."""
    return UsageError(
        "the transaction has already failed and can only be rolled back",
        remedy="Roll it back and do its work again in a new transaction.",
    )


def refusal_of(error: Any, *, doing: str) -> OnecommitError | None:
    """Our error for what one of our functions raised, through any driver; None for any other error."""
    sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    match sqlstate:
        case "3F000" | "42883" | "42P01":  # no such schema, function, table
            return SchemaMissing(f"{doing} is not installed under this schema name")
        case "42501":
            return UsageError(
                f"the login may not use {doing}",
                remedy="Grant its role USAGE on the schema and EXECUTE on that function.",
            )
        case _:
            described = getattr(error, "diag", None)
            message = getattr(
                described or error, "message_primary" if described else "message", None
            )
            hint = getattr(described or error, "message_hint" if described else "hint", None)
            return from_sqlstate(sqlstate, message or "refused", hint=hint)
