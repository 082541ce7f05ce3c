"""What every adapter says about the caller's transaction and its errors."""

from typing import Any

from onecommit.errors import OnecommitError, UsageError, from_sqlstate


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


def refusal_of(error: Any) -> OnecommitError | None:
    """Our error for what a Onecommit function raised through any driver; None for any other error."""
    sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    described = getattr(error, "diag", None)
    if described is not None:
        return from_sqlstate(sqlstate, described.message_primary, hint=described.message_hint)
    return from_sqlstate(
        sqlstate, getattr(error, "message", "refused"), hint=getattr(error, "hint", None)
    )
