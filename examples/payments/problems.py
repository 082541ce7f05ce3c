"""How a refusal of the protocol is told over HTTP. The caller's transaction was rolled back by then."""

from fastapi import Request, status
from fastapi.responses import JSONResponse

from onecommit import CommandConflict, InvalidArgument, OnecommitError, WorkError
from onecommit.errors import (
    EpochFenced,
    OperatorNotAuthorized,
    ScopeDisabled,
    StoreUnavailable,
    WorkNotFound,
)

STATUS: dict[type[OnecommitError], int] = {
    InvalidArgument: status.HTTP_422_UNPROCESSABLE_CONTENT,
    CommandConflict: status.HTTP_409_CONFLICT,
    ScopeDisabled: status.HTTP_410_GONE,
    WorkNotFound: status.HTTP_404_NOT_FOUND,
    OperatorNotAuthorized: status.HTTP_403_FORBIDDEN,
    WorkError: status.HTTP_409_CONFLICT,
    EpochFenced: status.HTTP_503_SERVICE_UNAVAILABLE,
    StoreUnavailable: status.HTTP_503_SERVICE_UNAVAILABLE,
    OnecommitError: status.HTTP_500_INTERNAL_SERVER_ERROR,
}


async def refused(_: Request, error: Exception) -> JSONResponse:
    """The code, what happened and what to do: never a payload."""
    if not isinstance(error, OnecommitError):
        raise error
    number = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    return JSONResponse(
        {"code": error.code, "problem": error.message, "remedy": error.remedy}, status_code=number
    )
