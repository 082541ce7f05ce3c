"""What the server or the connection raised, as our errors."""

import re

import psycopg
from psycopg import errors

from onecommit.drivers.transaction import refusal_of
from onecommit.errors import InvalidArgument, OnecommitError, StoreUnavailable

CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
"""Rolled back as a whole by the server and right to try again."""

_UNREACHABLE = (
    (
        r"FATAL: .*(too many clients|too many connections|connection slots are reserved)",
        "the server has no connection left",
        "Raise max_connections, or lower the pools of those that use this server.",
    ),
    (
        r"FATAL: .*password authentication failed|no password supplied",
        "the server refused the login: the role or its password is not the right one",
        "Compare the user and the password of the DSN with the server's.",
    ),
    (
        r"FATAL: .*(role .* does not exist|not permitted to log in|no pg_hba.conf entry)",
        "the server refused the login: this role may not log in from here",
        "Create the role with LOGIN, and look into the server's pg_hba.conf.",
    ),
    (
        r"FATAL: .*database .* does not exist",
        "the server has no database of this name",
        "Create it, or name another one in the DSN.",
    ),
    (
        r"Connection refused|No such file or directory",
        "the server could not be reached: nothing listens at its address",
        "Start it, or repair the host and the port of the DSN.",
    ),
    (
        r"failed to resolve host|could not translate host name",
        "the server could not be reached: nobody knows the name of its host",
        "Repair the host of the DSN.",
    ),
)
"""What libpq and PostgreSQL say in English, what it means, and what to do."""


def failure_of(error: psycopg.Error, *, doing: str) -> OnecommitError | None:
    """Our error for what happened while `doing`; None for one that only a defect explains."""
    if isinstance(error, CONFLICTS):  # also those that a caller's transaction is told of
        return StoreUnavailable(f"{doing} met concurrent changes again and again")
    ours = (
        _read_only(error) or _refused_argument(error, doing=doing) or refusal_of(error, doing=doing)
    )
    if ours is not None:
        return ours
    match error:
        case errors.QueryCanceled():
            return StoreUnavailable(
                f"{doing} took longer than the operation timeout and was cancelled",
                remedy="Look for locks that others hold, or raise operation_timeout.",
            )
        case errors.DiskFull():
            return StoreUnavailable(
                f"the server's disk is full, and {doing} was rolled back",
                remedy="Make room where the server keeps its data and its WAL.",
            )
        case psycopg.OperationalError() if error.diag.severity_nonlocalized == "ERROR":
            return StoreUnavailable(
                f"the server could not do {doing} and rolled it back (SQLSTATE {error.sqlstate})",
                remedy="Its log says what it lacks.",
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreUnavailable(
                f"the connection was lost during {doing}; it may or may not have taken effect"
            )
        case _:
            return None


def _read_only(error: psycopg.Error) -> StoreUnavailable | None:
    """Of a transaction of our own: it is the server's state, not a mistake of whoever began it."""
    if not isinstance(error, errors.ReadOnlySqlTransaction):
        return None
    return StoreUnavailable(
        "the server is read-only",
        remedy="It is a standby: name the primary, or add target_session_attrs=read-write.",
    )


def _refused_argument(error: psycopg.Error, *, doing: str) -> InvalidArgument | None:
    """An argument that is no value of its type; the driver's text could hold it, so it stays below."""
    match error:
        case errors.NumericValueOutOfRange():
            return InvalidArgument(f"a number given to {doing} is larger than the store holds")
        case errors.InvalidTextRepresentation():
            return InvalidArgument(f"an argument of {doing} is not of its type")
        case psycopg.DataError() if error.sqlstate is None and "NUL" in str(
            error
        ):  # it was not sent
            return InvalidArgument(f"a text given to {doing} holds a NUL character")
        case _:
            return None


def unreachable(error: psycopg.Error) -> StoreUnavailable:
    """Why no connection could be made; the driver's text could hold the address, so it stays below."""
    if isinstance(error, errors.ConnectionTimeout):
        return StoreUnavailable("the server did not answer in time")
    # libpq gives no SQLSTATE for a refused login. A server that speaks another language gets the last answer.
    for sign, meaning, remedy in _UNREACHABLE:
        if re.search(sign, str(error)):
            return StoreUnavailable(meaning, remedy=remedy)
    return StoreUnavailable("the server could not be reached, or refused the connection")
