"""What shops tell us: each event becomes a row and its Work, in one commit, once."""

import hashlib
import hmac
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response, status
from pydantic import BaseModel, Field, StringConstraints

from onecommit import Accepted, Duplicate

from payments.contracts import Charge, Payout, charge, payout
from payments.database import insert_order, insert_payout, pool

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}$")]


async def check_signature(
    request: Request, x_shop_signature: Annotated[str, Header()] = ""
) -> None:
    """Refuse an event that was not signed with the secret that we share with the sender."""
    secret: str = request.app.state.settings.webhook_secret
    expected = hmac.new(secret.encode(), await request.body(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), x_shop_signature.encode()):
        raise HTTPException(status.HTTP_401_UNAUTHORIZED, "the signature does not fit the body")


router = APIRouter(prefix="/webhooks", dependencies=[Depends(check_signature)])


class OrderPlaced(BaseModel):
    id: Name
    """Of the event: the same whenever the shop sends it again."""
    shop: Name
    order: Name
    cents: int = Field(gt=0, le=10_000_000)


class PayoutDue(BaseModel):
    id: Name
    shop: Name
    payout: Name
    cents: int = Field(gt=0, le=100_000_000)


class AcceptedEvent(BaseModel):
    work_id: int
    command_id: str
    """Of the event that was accepted: of the original, if this one repeats it."""


@router.post("/orders", status_code=status.HTTP_202_ACCEPTED)
async def order_placed(event: OrderPlaced, response: Response) -> AcceptedEvent:
    """Write the order and accept its charge."""
    async with pool.connection() as connection, connection.transaction():
        acceptance = await charge.in_tx(connection).accept(
            Charge(event.order, event.cents),
            scope=event.shop,
            command_id=event.id,
            idempotency_key=f"order:{event.order}",
        )
        await insert_order(
            connection,
            shop=event.shop,
            number=event.order,
            cents=event.cents,
            work_id=acceptance.work_id,
        )
    return answer(acceptance, response)


@router.post("/payouts", status_code=status.HTTP_202_ACCEPTED)
async def payout_due(event: PayoutDue, response: Response) -> AcceptedEvent:
    """Write the payout and accept its transfer."""
    async with pool.connection() as connection, connection.transaction():
        acceptance = await payout.in_tx(connection).accept(
            Payout(event.payout, event.cents),
            scope=event.shop,
            command_id=event.id,
            idempotency_key=f"payout:{event.payout}",
        )
        await insert_payout(
            connection,
            shop=event.shop,
            number=event.payout,
            cents=event.cents,
            work_id=acceptance.work_id,
        )
    return answer(acceptance, response)


def answer(acceptance: Accepted | Duplicate, response: Response) -> AcceptedEvent:
    """202 for what is new, 200 for what was accepted before, with the ids of the original."""
    if isinstance(acceptance, Duplicate):
        response.status_code = status.HTTP_200_OK
    return AcceptedEvent(work_id=acceptance.work_id, command_id=acceptance.command_id)
