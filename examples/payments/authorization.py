"""Who an operator is, and what that operator may do. Put your own sign-in and your own rules here."""

import hmac
from typing import Annotated

from fastapi import Depends, Header, HTTPException, Request, status

from onecommit import OperatorAction

from payments.contracts import app
from payments.settings import Settings

MAY: dict[str, set[str]] = {
    "ada": {"cancel", "reconcile", "resolve", "retry_safe"},
    "viv": set(),  # looks, and touches nothing
    "reconciliation": {"reconcile"},  # the job
}


@app.authorize
def may(action: OperatorAction) -> bool:
    """Asked before each command about Work, wherever it comes from."""
    return action.operation in MAY.get(action.actor, ())


async def signed_in(request: Request, authorization: Annotated[str, Header()] = "") -> str:
    """The operator whose bearer token came with the request."""
    settings: Settings = request.app.state.settings
    given = authorization.removeprefix("Bearer ").encode()
    for name, token in settings.tokens.items():
        if hmac.compare_digest(token.encode(), given):
            return name
    raise HTTPException(
        status.HTTP_401_UNAUTHORIZED, "sign in", headers={"WWW-Authenticate": "Bearer"}
    )


Operator = Annotated[str, Depends(signed_in)]
