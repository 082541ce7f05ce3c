"""How an order or a payout of a shop stands: our row, and the state of its Work."""

from typing import Any

from fastapi import APIRouter, Depends, HTTPException, status

from payments.authorization import signed_in
from payments.contracts import app
from payments.database import find_order, find_payout

router = APIRouter(prefix="/shops/{shop}", dependencies=[Depends(signed_in)])


@router.get("/orders/{number}")
async def show_order(shop: str, number: str) -> dict[str, Any]:
    """An order, whether it is paid, and how its Work stands."""
    return await shown(await find_order(shop, number))


@router.get("/payouts/{number}")
async def show_payout(shop: str, number: str) -> dict[str, Any]:
    """The same for a payout."""
    return await shown(await find_payout(shop, number))


async def shown(row: dict[str, Any] | None) -> dict[str, Any]:
    """The row with the state of its Work, or 404."""
    if row is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND)
    work = await app.works.get(row["work_id"])
    return row | {"work_state": work and work.state}
