"""What the server or the connection raised, as our errors."""

import psycopg
from psycopg import errors

from onecommit.drivers.transaction import refusal_of
from onecommit.errors import InvalidArgument, OnecommitError, StoreUnavailable

CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
"""Rolled back as a whole by the server and right to try again."""


def failure_of(error: psycopg.Error, *, doing: str) -> OnecommitError | None:
    """Our error for what happened while `doing`; None for one that only a defect explains."""
    ours = refusal_of(error, doing=doing)
    if ours is not None:
        return ours
    match error:
        case errors.NumericValueOutOfRange():
            return InvalidArgument(f"a number given to {doing} is larger than the store holds")
        case errors.ReadOnlySqlTransaction():
            return StoreUnavailable(
                "the server is read-only",
                remedy="It is a standby: name the primary, or add target_session_attrs=read-write.",
            )
        case errors.QueryCanceled():
            return StoreUnavailable(
                f"{doing} took longer than the operation timeout and was cancelled",
                remedy="Look for locks that others hold, or raise operation_timeout.",
            )
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return StoreUnavailable(f"{doing} met concurrent changes again and again")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreUnavailable(
                f"the connection was lost during {doing}; it may or may not have taken effect"
            )
        case _:
            return None


def unreachable(error: psycopg.Error) -> StoreUnavailable:
    """Why no connection could be made; the driver's text could hold the address, so it stays below."""
    match error:
        case errors.ConnectionTimeout():
            return StoreUnavailable("the server did not answer in time")
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return StoreUnavailable("the server refused the login")
        case errors.InvalidCatalogName():
            return StoreUnavailable("the database does not exist")
        case errors.TooManyConnections():
            return StoreUnavailable("the server has no connection left")
        case _:
            return StoreUnavailable("the server could not be reached, or refused the connection")
